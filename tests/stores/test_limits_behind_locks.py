"""A steward hands a place on although others hold, again and again, what the next job needs at its other limits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import select, text

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.lease import NOTHING
from queuepool.payload.limits import NO_PART, PlaceAsked, holding
from queuepool.stores.factory import Stores
from tests.support.drivers import connection_of, opened
from tests.support.eventually import eventually
from tests.support.samples import new_jobs, payload

A, B = PlaceAsked("a", NO_PART, 1), PlaceAsked("b", NO_PART, 1)
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of("postgres", request)


@pytest.fixture
def stores(connection: ConnectionSettings) -> Iterator[Stores]:
    with opened(connection) as found:
        yield found


def sweep(connection: ConnectionSettings) -> None:
    with closing(Stores(connection, reply_timeout=60.0)) as stores:
        stores.limits.sweep()


def test_a_steward_waits_for_what_the_next_job_needs(stores, connection):
    store, tag = stores.queue, stores.queue.join()
    store.push("default", new_jobs(payload("first"), payload("second")))
    first, second = map(holding, store.reserve(["default"], tag, 2).leases)
    store.limits.enter(first, "first", [A])
    store.limits.enter(second, "second", [A, B])
    engine = stores.client.engine
    with engine.connect() as other, engine.connect() as watcher:
        other.execution_options(isolation_level="READ COMMITTED")
        other.execute(text("SET idle_in_transaction_session_timeout = 0"))
        limits = stores.client.tables.queuepool_limits.c
        other.execute(select(limits.key).where(limits.key == "b").with_for_update())
        assert store.finish(first, NOTHING)
        assert 1 == store.limits.parked("default")

        steward = threading.Thread(target=sweep, args=[connection], daemon=True)
        steward.start()
        eventually(lambda: not steward.is_alive() or watcher.execute(text(_WAITING)).scalar())
        other.rollback()

    eventually(lambda: not steward.is_alive())
    assert 0 == store.limits.parked("default")
