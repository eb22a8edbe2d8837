"""Transactions that may be idle for as long as a crowded machine lets their process wait for a processor."""

from __future__ import annotations

from queuepool.stores.factory import Stores

#: the settings of these, by the names of dialects
LIMITS = {"postgresql": "idle_in_transaction_session_timeout", "mysql": "idle_transaction_timeout"}
LIMITS["mariadb"] = LIMITS["mysql"]


def let_transactions_be_idle(stores: Stores) -> None:
    """The server would end one whose client says nothing for two seconds; on Redis and SQLite none can be ended."""
    engine = getattr(stores.client, "engine", None)
    if engine and (limit := LIMITS.get(engine.dialect.name)):
        stores.client.ask(lambda connection: connection.exec_driver_sql(f"SET SESSION {limit} = 0"))
