"""Many at once on a database where nobody was before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from databases import DatabaseServer
from sqlalchemy import Connection

from queuepool.build import Stores
from queuepool.settings import ConnectionSettings
from queuepool.stores.sql.ddl import statements_of


@pytest.mark.parametrize("brand", ["postgres", "mariadb"])
def test_workers_that_begin_at_once_all_get_tags_of_their_own(request: pytest.FixtureRequest, brand: str) -> None:
    server: DatabaseServer = request.getfixturevalue(brand)
    with server.database() as url:
        for statements in statements_of(url.partition(":")[0]).values():
            server.execute(url, *statements)
        stores = Stores(ConnectionSettings(url=url), shared=True)
        try:
            for _ in range(10):
                server.execute(url, "DELETE FROM cache")
                with ThreadPoolExecutor(8) as threads:
                    tags = set(threads.map(lambda _: stores.queue.join(), range(8)))

                assert 8 == len(tags)
        finally:
            stores.close()


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
