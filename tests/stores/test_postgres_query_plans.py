"""PostgreSQL plans the search for the next job anew when an empty table fills."""

from __future__ import annotations

from sqlalchemy import text

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from queuepool.stores.sql.ddl import statements_of
from tests.support.databases import DatabaseServer

_FLOOD = """
    INSERT INTO jobs (queue, payload, attempts, available_at, created_at)
    SELECT 'default', '{}', 0, 0, 0 FROM generate_series(1, 100000)
"""
_KEPT = "SELECT sum(generic_plans) FROM pg_prepared_statements WHERE statement LIKE '%jobs%'"


def test_a_worker_that_waited_at_an_empty_queue_makes_a_new_plan_when_a_flood_comes(postgres: DatabaseServer) -> None:
    with postgres.database() as url:
        for statements in statements_of("postgresql").values():
            postgres.execute(url, *statements)
        stores = Stores(ConnectionSettings(url=url))
        queue, tag = stores.queue, stores.queue.join()
        for _ in range(20):
            queue.reserve(["default"], tag, 1)
        postgres.execute(url, _FLOOD)

        assert 1 == len(queue.reserve(["default"], tag, 1).leases)
        assert 0 == stores.client.ask(lambda connection: connection.execute(text(_KEPT)).scalar_one())
        stores.close()
