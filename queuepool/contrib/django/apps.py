"""The app: what it sets up when Django starts, its checks, its tables. It reads no settings before they are needed."""

from __future__ import annotations

import logging
from typing import Any

from django.apps import AppConfig
from django.core.checks import Error, register
from django.core.signals import setting_changed
from django.db import connections, transaction
from django.db.models.signals import post_migrate

from queuepool.config import application
from queuepool.config.loader import load
from queuepool.contrib.django import dispatching, settings
from queuepool.contrib.django.dispatching import watched
from queuepool.contrib.django.settings import databases
from queuepool.errors import ConfigError
from queuepool.stores.sql.ddl import statements_of

_log = logging.getLogger("queuepool")


class QueuepoolConfig(AppConfig):  # type: ignore[misc]
    """``queuepool.contrib.django`` in ``INSTALLED_APPS``."""

    name = "queuepool.contrib.django"
    label = "queuepool"
    verbose_name = "queuepool"

    def ready(self) -> None:
        """Make the settings those of this process, and dispatches part of Django's transactions."""

        if settings.have_tasks():
            import django.tasks.checks  # noqa: F401 - Django itself registers these with the first import of its tasks

        application.provide(settings.source)
        dispatching.begin()
        post_migrate.connect(make_tables, sender=self)
        setting_changed.connect(_renew)


def _renew(*, setting: str, **_: Any) -> None:
    """A test has changed a setting."""
    if setting in (settings.NAME, "DATABASES"):
        dispatching.renew()


@register  # type: ignore[untyped-decorator]
def check_mail(**_: Any) -> list[Any]:
    """An error for what is wrong in the options of the e-mail backend, if it is used."""
    if not settings.have_mail():
        return []
    from queuepool.contrib.django.mail_options import mail_options  # imported here: most projects do not use it

    try:
        mail_options()
    except ConfigError as error:
        return [Error(str(error), id="queuepool.E003")]
    return []


@register  # type: ignore[untyped-decorator]
def check_settings(**_: Any) -> list[Any]:
    """An error for each problem of the settings; opens nothing."""
    return [Error(line, id="queuepool.E001") for line in _problems()]


def _problems() -> list[str]:
    found = []
    for step in (lambda: load(None), watched):
        try:
            step()
        except ConfigError as error:
            found += str(error).split("\n")
    return found


# After each ``migrate``, and not by a migration: a queue may move to another database later, tests may run without
# migrations, and a table that Laravel has made stays as it is. Nothing is ever altered or dropped.
def make_tables(*, using: str, **_: Any) -> None:
    """Create Laravel's tables that are missing in the database ``using``, if a queue is there."""
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
        _log.info("created tables %s in database %s", ", ".join(missing), using)
