"""A push of one job in PostgreSQL: one statement in one round trip, on a connection that is known to live."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from tests.stores.test_reserving_in_postgresql import driver_of, turns_of
from tests.support.databases import DatabaseServer
from tests.support.drivers import opened
from tests.support.samples import ids, new_jobs, payload

_END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'queuepool'"


@pytest.fixture
def stores(postgres_url: str) -> Iterator[Stores]:
    """A producer's, which has pushed before."""
    with opened(ConnectionSettings(url=postgres_url)), shared(postgres_url) as producer:
        producer.queue.push("default", new_jobs(payload("first")))
        yield producer


@contextmanager
def shared(url: str) -> Iterator[Stores]:
    stores = Stores(ConnectionSettings(url=url), shared=True)
    yield stores
    stores.close()


#: seconds for which a connection is believed to live, and more than a crowded machine may hold the test up
MOMENT, PAUSE = 1.0, 60.0


def facts_of(stores: Stores) -> Any:
    """What is known of the producer's one connection; ``used_at`` is written each time that it comes back."""
    return stores.client.ask(lambda connection: connection.info)


def test_a_push_of_one_job_is_one_round_trip(stores):
    facts = facts_of(stores)

    def push() -> None:
        facts["used_at"] += PAUSE
        stores.queue.push("default", new_jobs(payload("a")))

    for _ in range(6):  # until the driver has prepared the statement, which takes one more, once
        push()
    assert [1] * 3 == [turns_of(stores.client, push) for _ in range(3)]
    assert 10 == stores.queue.sizes("default").ready


def test_a_connection_that_was_not_used_for_a_second_is_asked_first(stores):
    facts = facts_of(stores)

    def push() -> None:
        facts["used_at"] -= MOMENT
        stores.queue.push("default", new_jobs(payload("a")))

    assert 2 == turns_of(stores.client, push)


@pytest.mark.fault("F68")
@pytest.mark.parametrize("seconds", [PAUSE, -PAUSE], ids=["used a moment ago", "used long ago"])
def test_a_push_after_the_server_has_ended_the_connection_takes_another_and_adds_one_job(
    stores, postgres: DatabaseServer, postgres_url, seconds
):
    socket = driver_of(stores.client).pgconn.socket
    facts_of(stores)["used_at"] += seconds
    postgres.execute(postgres_url, _END_ALL)  # returns when they are told to end
    assert select.select([socket], [], [], PAUSE)[0]

    stores.queue.push("default", new_jobs(payload("a")))

    assert 0 == stores.queue.unanswered
    assert ["first", "a"] == ids(stores.queue.reserve(["default"], 7, 5).leases)


def test_a_job_and_its_notice_come_together(stores, postgres: DatabaseServer, postgres_url):
    with postgres.engine(postgres_url).connect() as listener:
        driver: Any = listener.execution_options(isolation_level="AUTOCOMMIT").connection.driver_connection
        driver.execute("LISTEN queuepool")
        stores.queue.push("default", new_jobs(payload("a")), delay=5.0)
        stores.queue.push("high", new_jobs(payload("b"), payload("c")))
        notices = [notice.payload for notice in driver.notifies(timeout=10.0, stop_after=2)]

    assert ["default", "high"] == notices
    assert (1, 1, 2) == (
        stores.queue.sizes("default").ready, stores.queue.sizes("default").delayed, stores.queue.sizes("high").ready
    )  # fmt: skip
