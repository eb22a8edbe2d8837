"""The statements of Laravel's migrations, in one file for each family of databases.

Source: Illuminate/Queue/Console/stubs and Illuminate/Cache/Console/stubs (13.x).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def statements_of(database: str) -> Mapping[str, list[str]]:
    """The statements for this database, by the name of the table that they create."""
    family = "mysql" if database == "mariadb" else database
    text = (files(__package__) / f"{family}.sql").read_text()
    _, *parts = re.split(r"^-- (\w+)\n", text, flags=re.MULTILINE)
    return {name: made.strip().splitlines() for name, made in zip(parts[::2], parts[1::2], strict=True)}
