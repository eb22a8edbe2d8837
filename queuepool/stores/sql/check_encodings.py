"""Check which characters a database can hold: what it cannot is written as escapes, and some of it refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from sqlalchemy import Connection, text

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.stores.finding import Finding, Grade
from queuepool.stores.sql.charsets import charset_of
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.encoding import UNICODE
from queuepool.stores.sql.schema import TABLES
from queuepool.stores.sql.tables import TableNames, tables_of

_COLUMNS = text(
    "SELECT column_name, character_set_name FROM information_schema.columns "
    "WHERE table_schema = database() AND table_name = :name AND character_set_name IS NOT NULL "
    "ORDER BY ordinal_position"
)
_COST = (
    "which lacks characters: in payloads and errors they are kept as escapes (\\U0001f600), a queue's name with "
    "them is refused"
)


def inspect_failed_store(connection: ConnectionSettings) -> Iterator[Finding]:
    """The same for a failed store in a database apart from the queue."""
    names = TableNames.of(connection, connection.failed_url)
    with closing(Client(connection.failed_url, store="failed store", tables=tables_of(names))) as client:
        try:
            found = list(encodings(client, ["failed_jobs"]))
        except StoreError:
            return  # which is a finding of its own
    yield from (Finding(grade, f"connection {connection.name}", words) for grade, words in found)


def encodings(client: Client, tables: Sequence[str] = TABLES) -> Iterator[tuple[Grade, str]]:
    """What these tables, by their usual names, cannot hold. Raises ``StoreError``."""
    kind = client.ask(lambda connection: connection.dialect.name)
    if kind == "postgresql":
        yield from _of_database(client)
    elif kind != "sqlite":
        for usual in tables:
            yield from _of_table(client, client.tables.table(usual).name)


def _of_database(client: Client) -> Iterator[tuple[Grade, str]]:
    def read(connection: Connection) -> str:
        return str(connection.exec_driver_sql("SELECT current_setting('server_encoding')").scalar_one())

    name = client.ask(read)
    if name == "SQL_ASCII":
        yield Grade.WARN, f"the database's encoding is {name}: it takes other programs' bytes that are no UTF-8"
    elif charset_of(name, is_postgres=True) != UNICODE:
        yield Grade.WARN, f"the database's encoding is {name}, {_COST}; one in UTF8 would hold all"


def _of_table(client: Client, name: str) -> Iterator[tuple[Grade, str]]:
    rows = client.ask(lambda connection: connection.execute(_COLUMNS, {"name": name}).all())
    narrow: dict[str, list[str]] = {}
    for column, charset in rows:
        if charset_of(charset) != UNICODE:
            narrow.setdefault(charset, []).append(column)
    remedy = f"ALTER TABLE {name} CONVERT TO CHARACTER SET utf8mb4"
    for charset, columns in narrow.items():
        yield Grade.WARN, f"the table {name} has {', '.join(columns)} in {charset}, {_COST}; {remedy}"
