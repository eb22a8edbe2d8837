"""How a table's columns treat texts: which characters they hold, and how names in them are compared.

Older tables and databases do not hold all of Unicode. A server would refuse a text with other characters, and with it
the whole record. Asked once, for the first text that is not ASCII.

Names are compared by their bytes, as Redis and most databases do; MySQL's collations treat many names as equal. The
comparison that MySQL's index supports comes first: it finds a few rows, whose bytes are then compared.
"""

from __future__ import annotations

import codecs
import re
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Dialect,
    LargeBinary,
    Table,
    Text,
    and_,
    cast,
    func,
    literal_column,
    text,
    type_coerce,
)

from queuepool.stores.sql.encoding import ASCII, UNICODE, Charset, bytes_of, storable, storable_json

_OF_COLUMN = text(
    "SELECT character_set_name FROM information_schema.columns "
    "WHERE table_schema = coalesce(:place, database()) AND table_name = :name AND column_name = :column"
)
_OF_DATABASE = text("SELECT current_setting('server_encoding')")
#: half of Unicode: what MySQL calls utf8, and its predecessor
_BMP = Charset(last="\uffff")
#: names that Python's codecs do not have; SQL_ASCII takes any bytes, and ours are UTF-8
_KNOWN = MappingProxyType({
    "utf8mb4": UNICODE, "sql_ascii": UNICODE, "utf8": _BMP, "utf8mb3": _BMP, "ucs2": _BMP, "latin1": Charset("cp1252"),
    "koi8r": Charset("koi8-r"), "koi8u": Charset("koi8-u"),
})  # fmt: skip
_MYSQL = ("mysql", "mariadb")
_UTF8: ColumnElement[Any] = literal_column("utf8mb4")


class Charsets:
    """The characters of one table's columns; writes others as escapes."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._found: dict[str, Charset] = {}

    def text(self, connection: Any, column: str, value: str) -> str:
        """The text, with escapes for what this column does not hold."""
        return storable(value, UNICODE if value.isascii() else self.of(connection, column))

    def json(self, connection: Any, column: str, value: str) -> str:
        """The same JSON, with escapes for what this column does not hold."""
        return storable_json(value, UNICODE if value.isascii() else self.of(connection, column))

    def of(self, connection: Any, column: str) -> Charset:
        """The characters of this column; ``connection`` may be the application's own (``borrowed.Callers``)."""
        if column not in self._found:
            self._found[column] = self._ask(connection, column)
        return self._found[column]

    def _ask(self, connection: Any, column: str) -> Charset:
        match connection.dialect.name:
            case "sqlite":
                return UNICODE
            case "postgresql":
                return charset_of(bytes_of(connection.execute(_OF_DATABASE).scalar()).decode(), is_postgres=True)
        words = {"place": self._table.schema, "name": self._table.name, "column": column}
        name = connection.execute(_OF_COLUMN, words).scalar()
        return charset_of(bytes_of(name).decode()) if name else UNICODE  # a binary column has no charset


def charset_of(name: str, *, is_postgres: bool = False) -> Charset:
    """The characters of an encoding by its name in MySQL or PostgreSQL; ASCII, if Python does not know it."""
    name = name.lower()
    if is_postgres and name in ("utf8", "latin1"):
        return UNICODE if name == "utf8" else Charset("latin-1")
    if name in _KNOWN:
        return _KNOWN[name]
    try:
        return Charset(codecs.lookup(re.sub(r"^win(?=\d)", "cp", name)).name)
    except LookupError:
        return ASCII


def is_name(dialect: Dialect, column: ColumnElement[Any], name: Any) -> ColumnElement[bool]:
    """Whether the column is exactly this name."""
    same = column == name
    return and_(same, _bytes_of(column) == name) if dialect.name in _MYSQL else same


def is_one_of(dialect: Dialect, column: ColumnElement[Any], names: Any) -> ColumnElement[bool]:
    """Whether the column is exactly one of these names."""
    same = column.in_(names)
    return and_(same, _bytes_of(column).in_(names)) if dialect.name in _MYSQL else same


def exactly(dialect: Dialect, column: ColumnElement[Any]) -> ColumnElement[str]:
    """The exact name, for comparisons among rows."""
    return _bytes_of(column) if dialect.name in _MYSQL else column


def _bytes_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The bytes in the connection's encoding, whatever the column's is.

    Trailing spaces count, which they do in no collation that both MySQL and MariaDB have.
    """
    return type_coerce(cast(func.convert(column.op("USING")(_UTF8)), LargeBinary), Text)
