"""Laravel's tables in the databases of Django's that hold a queue, made by ``manage.py migrate``.

After each ``migrate``, and not by a migration: a queue may move to another database later, tests may run without
migrations, and a table that Laravel has made stays as it is. Nothing is ever altered or dropped.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import connections, transaction

from queuepool.contrib.django.settings import databases
from queuepool.stores.sql.ddl import statements_of

_log = logging.getLogger("queuepool")


def make_tables(*, using: str, **_: Any) -> None:
    """Make the missing ones in the database ``using`` if a queue is there."""
    connection = connections[using]
    if using not in databases() or connection.vendor not in ("sqlite", "postgresql", "mysql"):
        return
    there = set(connection.introspection.table_names())
    missing = {name: made for name, made in statements_of(connection.vendor).items() if name not in there}
    with transaction.atomic(using), connection.cursor() as cursor:
        for statements in missing.values():
            for statement in statements:
                cursor.execute(statement)
    if missing:
        _log.info("made the tables %s in the database %s", ", ".join(missing), using)
