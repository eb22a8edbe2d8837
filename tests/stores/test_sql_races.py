"""Transactions that others block or abort are tried again."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from tests.support.databases import DatabaseServer

_OTHERS_END = {
    "postgres": "SELECT pg_terminate_backend({})",
    "mariadb": "KILL CONNECTION {}",
}
_NUMBER = {"postgres": "SELECT pg_backend_pid()", "mariadb": "SELECT CONNECTION_ID()"}


@pytest.mark.parametrize("brand", ["postgres", "mariadb"])
def test_a_transaction_that_others_were_in_the_way_of_is_tried_again_also_when_its_connection_is_lost(
    request: pytest.FixtureRequest, brand: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(brand)
    with server.database() as url:
        server.execute(url, "CREATE TABLE seen (id INTEGER PRIMARY KEY)", "INSERT INTO seen VALUES (1)")
        stores, tried = Stores(ConnectionSettings(url=url)), []

        def insert(connection: Connection) -> None:
            tried.append(1 + len(tried))
            number = connection.exec_driver_sql(_NUMBER[brand]).scalar_one()
            try:
                connection.exec_driver_sql(f"INSERT INTO seen VALUES ({tried[-1]})")  # taken, the first time
            except Exception:
                server.execute(url, _OTHERS_END[brand].format(number))
                raise

        try:
            stores.client.transaction(insert)
            stores.client.ask(lambda connection: connection.exec_driver_sql("SELECT 1"))
        finally:
            stores.close()

        assert [1, 2] == tried
