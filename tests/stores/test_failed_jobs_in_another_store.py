"""Failed jobs wait beside the queue until they are recorded in a store elsewhere, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied
from queuepool.events import FailureUnrecorded
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import uncounted
from queuepool.payload.members import MemberOf
from queuepool.steward.side_stores import EventQueue, FailureRecorder, SideStores
from queuepool.stores.factory import Stores
from queuepool.stores.records import Retrying, Returned
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.each import each
from tests.support.graphs import Drawn, ended, taken
from tests.support.redis_server import PREFIX
from tests.support.samples import ids, new_jobs, payload

pytestmark = pytest.mark.every_store("apart")

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
        client = SqlClient(url, create=True)
        migrate(client)
        client.close()


def reserved(stores: Stores, *raws: bytes) -> list[Any]:
    stores.queue.push("default", new_jobs(*raws))
    return stores.queue.reserve(["default"], TAG, len(raws)).leases


def record(identity: str, raw: bytes) -> dict[str, Any]:
    facts = {"id": identity, "name": "app.ok", "queue": "default", "connection": "default", "attempts": 1}
    return {**facts, "payload": raw.decode(), "exception": "RuntimeError: told to"}


def fail(stores: Stores, lease: Any, identity: str = "a") -> bool:
    """And have it recorded, as the steward does."""
    failed = stores.queue.fail(lease, identity, record(identity, lease.receipt))
    stores.forwarder.forward()
    return failed


def test_a_failed_job_is_recorded_there_and_gone_here(apart):
    (lease,) = reserved(apart, payload("a"))

    assert fail(apart, lease)
    assert ["a"] == [row.id for row in apart.failed.page()]
    assert "RuntimeError: told to" == apart.failed.get("a").exception
    assert (0, 0) == (apart.queue.sizes("default").total, apart.forwarder.count())


def test_a_failed_job_waits_beside_the_jobs_until_it_is_recorded(apart):
    (lease,) = reserved(apart, payload("a"))

    assert apart.queue.fail(lease, "a", record("a", lease.receipt))
    assert (0, 0, 1) == (apart.queue.sizes("default").total, apart.failed.count(), apart.forwarder.count())
    assert [] == apart.queue.reserve(["default"], TAG, 5).leases


def test_a_job_that_was_not_ours_any_more_leaves_no_record(apart):
    (lease,) = reserved(apart, payload("a"))
    apart.queue.delete([lease])

    assert not fail(apart, lease)
    assert [] == apart.failed.page()


def test_a_failure_that_is_taken_there_twice_is_recorded_once(apart):
    (lease,) = reserved(apart, payload("a"))
    apart.queue.fail(lease, "a", record("a", lease.receipt))
    [pending] = apart.records.pending()
    apart.failed._records.record(pending)  # whoever did it died before it could say so

    assert 0 == apart.forwarder.forward()
    assert (1, 0) == (apart.failed.count(), apart.forwarder.count())


def test_a_failure_that_is_taken_there_twice_is_recorded_once_also_if_an_earlier_one_is_dropped_between(apart):
    fail(apart, reserved(apart, payload("a"))[0])
    (first,) = apart.failed.page()
    (lease,) = reserved(apart, payload("a"))
    apart.queue.fail(lease, "a", record("a", lease.receipt))
    apart.failed._records.record(apart.records.pending()[0])
    apart.failed.drop([first.key])

    assert (0, 1) == (apart.forwarder.forward(), apart.failed.count())


def test_a_job_that_fails_again_with_the_same_words_has_a_second_record(apart):
    """As after a retry, which pushes the job and only then drops its record: the two must not be taken for one."""
    fail(apart, reserved(apart, payload("a"))[0])
    (first,) = apart.failed.page()

    assert fail(apart, reserved(apart, payload("a"))[0])
    assert [True] == apart.failed.drop([first.key])
    assert ["a-2"] == [row.id for row in apart.failed.page()]


def test_of_two_jobs_with_one_id_both_are_recorded(apart):
    first, second = reserved(apart, payload("a"), payload("a", data={"other": True}))

    assert fail(apart, first)
    assert fail(apart, second)
    assert {"a", "a-2"} == {row.id for row in apart.failed.page()}


@pytest.mark.thorough("205 of them; two in test_of_two_jobs_with_one_id_both_are_recorded")
def test_more_failures_than_one_look_brings_are_all_taken(apart):
    for number, lease in enumerate(reserved(apart, *(payload(str(number)) for number in range(205)))):
        apart.queue.fail(lease, str(number), record(str(number), lease.receipt))

    assert 0 == apart.forwarder.forward()
    assert (205, 0) == (apart.failed.count(), apart.forwarder.count())


def test_a_retried_job_is_back_with_all_its_tries_and_its_record_gone(apart):
    fail(apart, reserved(apart, payload("a"))[0])
    (row,) = apart.failed.page()

    assert apart.failed.retry(row)
    assert not apart.failed.retry(row)
    leases = apart.queue.reserve(["default"], TAG, 5).leases
    assert ["a"] == ids(leases)
    assert 0 == apart.failed.count()


def test_redis_keeps_nothing_of_a_failure_that_was_recorded_elsewhere(connection, sqlite_url, server):
    make_tables(sqlite_url)
    stores = Stores(replace(connection, failed_url=sqlite_url))

    assert fail(stores, reserved(stores, payload("a"))[0])
    assert [] == server.keys("*failed*")
    stores.close()


def test_while_the_table_is_missing_failures_wait_and_the_table_is_named(connection, sqlite_url, redis_url):
    SqlClient(sqlite_url, create=True).ask(lambda c: c.exec_driver_sql("DROP TABLE failed_jobs"))
    stores = Stores(replace(connection, url=redis_url, failed_url=sqlite_url))
    (lease,) = reserved(stores, payload("a"))

    with pytest.raises(StoreDenied, match=r"failed store: the file .* has no table failed_jobs: run `queuepool mig"):
        fail(stores, lease)
    assert (0, 1) == (stores.queue.sizes("default").total, stores.forwarder.count())


def test_a_failure_that_the_failed_store_refuses_waits_and_its_reason_is_told_once(
    connection, sqlite_url, redis_url, server
):
    make_tables(sqlite_url)
    stores = Stores(replace(connection, url=sqlite_url, failed_url=redis_url))
    told, listeners, heard = EventQueue(), Listeners(), []
    listeners.add(FailureUnrecorded, heard.append)
    recorder = FailureRecorder(stores.forwarder, told, SideStores(told))
    server.set(f"{PREFIX}queuepool:failed", "x")
    stores.queue.fail(reserved(stores, payload("a"))[0], "a", record("a", payload("a")))

    assert [1, 1] == [recorder.record() for _ in range(2)]
    told.emit_to(listeners)
    server.delete(f"{PREFIX}queuepool:failed")

    assert [(1, True)] == [(event.count, "WRONGTYPE" in event.problem) for event in heard]
    assert (0, "", 1) == (recorder.record(), stores.forwarder.problem, stores.failed.count())
    stores.close()


@each(
    ("raw", "expected"),
    [
        (b'{"id":"a","attempts":3}', b'{"id":"a","attempts":0}'),
        (b'{"attempts":3,"id":"a"}', b'{"attempts":0,"id":"a"}'),
        (b'{"id":"a","data":{"attempts":3}}', b'{"id":"a","data":{"attempts":3}}'),
        (
            b'{"a":1.10,"x":{"attempts":3},"attempts": 3 ,"t":"\\u00e9"}',
            b'{"a":1.10,"x":{"attempts":3},"attempts": 0 ,"t":"\\u00e9"}',
        ),
        (b'{"attempts":3,"x\\"attempts":3}', b'{"attempts":0,"x\\"attempts":3}'),
        (b'{"a":"attempts","attempts":"3","b":1}', b'{"a":"attempts","attempts":0,"b":1}'),
        (b'{"attempts":1.5,"b":1}', b'{"attempts":0,"b":1}'),
        (b'{"id":"a"}', b'{"id":"a"}'),
        (b'not json "attempts":', b'not json "attempts":'),
    ],
)
def test_attempts_are_counted_anew(raw, expected):
    assert expected == uncounted(raw)


DAMAGED = ["garbage", "[]", "{}", '{"record": {"id": "b"}}', "[" * 1100 + '"' + '\\"' * 30_000]


def damage(apart: Stores, identity: str, text: str) -> None:
    """Write over the record that waits under this id."""
    if apart.settings.url.startswith("unix"):
        apart.client.command("HSET", apart.queue.keys.pending, identity, text)
        return
    jobs, number = apart.client.tables.jobs, int(identity.partition("-")[0])
    apart.client.ask(lambda c: c.execute(update(jobs).where(jobs.c.id == number).values(payload=text)))


@pytest.mark.bad_input("B170")
def test_damaged_records_that_wait_stay_where_they_are_and_hold_up_no_other(apart):
    """Or each steward dies of them."""
    for number, text in enumerate(DAMAGED, start=1):
        for name in ("before", "damaged", "behind"):
            [lease] = reserved(apart, payload(f"{name} {number}"))
            apart.queue.fail(lease, f"{name} {number}", record(f"{name} {number}", lease.receipt))
        damage(apart, apart.records.pending()[-2].id, text)

        assert number == apart.forwarder.forward()
        assert "is damaged" in apart.forwarder.problem
        assert {f"before {number}", f"behind {number}"} <= {row.id for row in apart.failed.page()}

    assert len(DAMAGED) == apart.forwarder.count()


def test_a_retry_resumes_the_flow_of_a_member(apart):
    drawn = Drawn({"a": [], "b": ["a"]})
    apart.flows.write(drawn.flow, drawn.members)
    [lease] = taken(apart.queue).values()
    assert ended(apart.queue, lease, "f")
    apart.forwarder.forward()
    assert "failed" == apart.flows.find(drawn.id).state

    assert [Returned.DONE] == apart.failed.retry_all([Retrying(row) for row in apart.failed.page()])
    for name in ("a", "b"):
        [(found, lease)] = taken(apart.queue).items()
        assert name == found
        assert ended(apart.queue, lease)
    assert ("done", 0) == (apart.flows.find(drawn.id).state, apart.failed.count())


def test_a_member_that_is_put_back_twice_counts_once(apart):
    drawn = Drawn({"a": [], "b": ["a"]})
    apart.flows.write(drawn.flow, drawn.members)
    [lease] = taken(apart.queue).values()
    assert ended(apart.queue, lease, "f")
    apart.forwarder.forward()
    [row] = apart.failed.page()
    for _ in range(2):  # as if it had crashed before the record went
        assert apart.records.resume(Retrying(row), MemberOf(drawn.id, "0"))
    for lease in apart.queue.reserve(["default"], TAG, 2).leases:
        assert ended(apart.queue, lease)

    assert ["b"] == list(taken(apart.queue))
