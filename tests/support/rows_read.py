"""How many rows a database has read for a client: what a plan costs, on any machine."""

from __future__ import annotations

from sqlalchemy import Connection

from queuepool.stores.factory import Stores

_READ = {
    "postgresql": "SELECT sum(idx_tup_fetch + seq_tup_read) FROM pg_stat_user_tables",
    "mariadb": "SELECT sum(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS"
    " WHERE VARIABLE_NAME LIKE 'HANDLER_READ%'",
}


def rows_read(stores: Stores) -> int:
    """By this client so far, as its database counts."""

    def read(connection: Connection) -> int:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
            connection.exec_driver_sql("SELECT 1")
        return int(connection.exec_driver_sql(_READ[connection.dialect.name].replace("%", "%%")).scalar_one())

    return stores.client.ask(read)
