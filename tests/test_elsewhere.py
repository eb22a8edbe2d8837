"""A failed store that is not where the queue is: recorded first, ended after; pushed first, forgotten after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from samples import ids, payload

from queuepool.build import Stores
from queuepool.errors import StoreDenied
from queuepool.payload import uncounted
from queuepool.settings import ConnectionSettings
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.migrate import migrate

TAG = 7


@pytest.fixture(params=["redis and sqlite", "sqlite and redis", "redis and postgres", "mariadb and redis"])
def apart(request: pytest.FixtureRequest, connection: ConnectionSettings) -> Iterator[Stores]:
    """A queue in the first, its failed store in the second."""
    queue, failed = (request.getfixturevalue(f"{name}_url") for name in request.param.split(" and "))
    for url in (queue, failed):
        make_tables(url)
    stores = Stores(replace(connection, url=queue, failed_url=failed))
    yield stores
    stores.close()


def make_tables(url: str) -> None:
    if not url.startswith("unix"):
        client = Client(url, create=True)
        migrate(client)
        client.close()


def reserved(stores: Stores, *raws: bytes) -> list[Any]:
    stores.queue.push("default", raws)
    return stores.queue.reserve(["default"], TAG, len(raws)).leases


def record(identity: str, raw: bytes) -> dict[str, Any]:
    facts = {"id": identity, "name": "app.ok", "queue": "default", "connection": "default", "attempts": 1}
    return {**facts, "payload": raw.decode(), "exception": "RuntimeError: told to"}


def fail(stores: Stores, lease: Any, identity: str = "a") -> bool:
    return stores.queue.fail(lease, identity, record(identity, lease.receipt))


def test_a_failed_job_is_recorded_there_and_gone_here(apart):
    (lease,) = reserved(apart, payload("a"))

    assert fail(apart, lease)
    assert ["a"] == [row.id for row in apart.failed.page()]
    assert 0 == apart.queue.sizes("default").total


def test_a_job_that_was_not_ours_any_more_leaves_no_record(apart):
    (lease,) = reserved(apart, payload("a"))
    apart.queue.delete([lease])

    assert not fail(apart, lease)
    assert [] == apart.failed.page()


def test_a_job_that_was_recorded_before_its_worker_died_is_recorded_once(apart):
    (lease,) = reserved(apart, payload("a"))
    apart.failed._records.record(record("a", lease.receipt))

    assert fail(apart, lease)
    assert 1 == apart.failed.count()


def test_of_two_jobs_with_one_id_both_are_recorded(apart):
    first, second = reserved(apart, payload("a"), payload("a", data={"other": True}))

    assert fail(apart, first)
    assert fail(apart, second)
    assert {"a", "a-2"} == {row.id for row in apart.failed.page()}


def test_a_retried_job_is_back_with_all_its_tries_and_its_record_gone(apart):
    fail(apart, reserved(apart, payload("a"))[0])
    (row,) = apart.failed.page()

    assert apart.failed.retry(row)
    assert not apart.failed.retry(row)
    leases = apart.queue.reserve(["default"], TAG, 5).leases
    assert ["a"] == ids(leases)
    assert 0 == apart.failed.count()


def test_while_the_table_is_missing_the_job_stays_and_the_table_is_named(connection, sqlite_url, redis_url):
    Client(sqlite_url, create=True).ask(lambda c: c.exec_driver_sql("DROP TABLE failed_jobs"))
    stores = Stores(replace(connection, url=redis_url, failed_url=sqlite_url))
    (lease,) = reserved(stores, payload("a"))

    with pytest.raises(StoreDenied, match="no table failed_jobs: run `queuepool migrate`"):
        fail(stores, lease)
    assert 1 == stores.queue.sizes("default").reserved


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"id":"a","attempts":3}', b'{"id":"a","attempts":0}'),
        (b'{"attempts":3,"id":"a"}', b'{"attempts":0,"id":"a"}'),
        (b'{"id":"a","data":{"attempts":3}}', b'{"id":"a","data":{"attempts":3}}'),
        (b'{"id":"a"}', b'{"id":"a"}'),
        (b'not json "attempts":', b'not json "attempts":'),
    ],
)
def test_attempts_are_counted_anew(raw, expected):
    assert expected == uncounted(raw)
