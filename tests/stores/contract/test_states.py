"""The states of tracked jobs: written with the push and with each settlement, or not at all."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from queuepool.payload.lease import Ending, Lock, StateRecord
from queuepool.stores.contract import NewJob
from queuepool.stores.sql.tables import USUAL
from tests.support.drivers import connection_of, opened
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, RETRY_AFTER, THEIRS, failed_job, record, reserved, seen

pytestmark = pytest.mark.usefixtures("at")

LOCK = Lock("laravel_unique_job:app.jobs.sync:7", "owner", 60.0)


def said(text: str, identity: str = "a", seconds: float = 60.0) -> StateRecord:
    return StateRecord(identity, text.encode(), seconds)


def tracked(text: str, identity: str = "a", seconds: float = 60.0) -> NewJob:
    return NewJob(payload(identity), said(text, identity, seconds))


def test_a_push_writes_the_state_of_each_job(built):
    assert built.queue.push("default", [tracked(f"state of {name}", name) for name in "abc"])
    assert list("abc") == ids(built.queue.reserve(["default"], OURS, 9).leases)
    assert [b"state of a", b"state of b", b"state of c"] == [built.values.state(name) for name in "abc"]
    assert built.values.state("never") is None


def test_more_jobs_than_one_call_takes_keep_their_order_and_states(built):
    names = [f"job{number}" for number in range(1003)]

    assert built.queue.push("default", [tracked(name, name) for name in names])
    assert 1003 == built.queue.sizes("default").ready
    assert [b"job0", b"job1002"] == [built.values.state(names[0]), built.values.state(names[-1])]


def test_a_delayed_job_has_its_state_at_once(built):
    built.queue.clock = ""

    assert built.queue.push("default", [tracked("delayed")], 60.0)
    assert (0, 1) == (built.queue.sizes("default").ready, built.queue.sizes("default").delayed)
    assert b"delayed" == built.values.state("a")


def test_a_unique_job_whose_lock_is_held_is_not_pushed_and_has_no_state(built):
    assert built.queue.push("default", [tracked("first")], lock=LOCK)
    assert not built.queue.push("default", [tracked("second", "b")], lock=LOCK._replace(owner="other"))

    assert 1 == built.queue.sizes("default").total
    assert (b"first", None) == (built.values.state("a"), built.values.state("b"))


SETTLED = {
    "finish": lambda store, lease, state: store.finish(lease, Ending(state=state)),
    "fail": lambda store, lease, state: store.fail(lease, "a", record(lease), Ending(state=state)),
    "release": lambda store, lease, state: store.release(lease, 0.0, "a", "", state),
    "release later": lambda store, lease, state: store.release(lease, 9.0, "a", "crashes", state),
}
each_settlement = pytest.mark.parametrize("settle", SETTLED.values(), ids=SETTLED)


@pytest.mark.every_store("connection")
@each_settlement
def test_a_settlement_writes_the_state(built, settle):
    [lease] = reserved(built.queue, payload("a"))

    assert settle(built.queue, lease, said("settled"))
    assert b"settled" == built.values.state("a")


@pytest.mark.every_store("connection")
@each_settlement
def test_a_late_settlement_leaves_the_state_as_it_is(built, at, settle):
    [late] = reserved(built.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)
    [theirs] = built.queue.reserve(["default"], THEIRS, 1).leases
    built.queue.show([theirs], [said("theirs")])

    assert not settle(built.queue, late, said("late"))
    assert b"theirs" == built.values.state("a")


@pytest.mark.every_store("connection")
@each_settlement
def test_a_settlement_of_a_job_that_is_not_tracked_writes_none(built, settle):
    [lease] = reserved(built.queue, payload("a"))

    assert settle(built.queue, lease, None)
    assert built.values.state("a") is None


def test_only_those_whose_lease_is_held_are_shown_as_running(built):
    lost, held = reserved(built.queue, payload("a"), payload("b"))
    assert built.queue.finish(lost, Ending(state=said("done")))

    built.queue.show([lost, held], [said("running"), said("running", "b")])

    assert (b"done", b"running") == (built.values.state("a"), built.values.state("b"))


def test_a_job_that_another_worker_has_reserved_again_is_not_shown_for_the_first(built, at):
    [late] = reserved(built.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)
    [theirs] = built.queue.reserve(["default"], THEIRS, 1).leases

    built.queue.show([late], [said("first")])
    assert built.values.state("a") is None
    built.queue.show([theirs], [said("second")])
    assert b"second" == built.values.state("a")


@pytest.mark.parametrize("state", [said("queued again"), None])
def test_a_retry_writes_the_state(built, state):
    found = failed_job(built)

    assert built.failed.retry(found, state=state)
    assert (state and state.text) == built.values.state("a")


def test_a_retry_of_a_record_that_is_gone_writes_nothing(built):
    found = failed_job(built)
    assert built.failed.retry(found)

    assert not built.failed.retry(found, state=said("queued again"))
    assert built.values.state("a") is None


def test_the_bytes_of_a_tracked_job_are_those_that_were_pushed(built):
    built.queue.push("default", [tracked("queued")])

    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    built.queue.push("other", new_jobs(payload("a")))
    [plain] = built.queue.reserve(["other"], OURS, 1).leases
    assert seen(plain) == seen(lease)


def test_a_state_ends_and_is_removed(sql):
    sql.queue.push("default", [tracked("short", "a", -1.0), tracked("short", "b", -1.0)])
    sql.queue.push("default", [tracked("long", "c")])

    assert [None, None, b"long"] == [sql.values.state(name) for name in "abc"]
    assert 3 == kept(sql)
    assert (2, 0) == (sql.values.prune_states(), sql.values.prune_states())
    assert 1 == kept(sql)
    assert b"long" == sql.values.state("c")


def kept(sql) -> int:
    """How many states the table holds."""
    ours = USUAL.cache.c.key.contains("queuepool:job:")
    return sql.client.ask(lambda c: c.execute(select(func.count()).select_from(USUAL.cache).where(ours)).scalar_one())


def test_redis_removes_a_state_by_itself(request):
    with opened(connection_of("redis", request)) as stores:
        stores.queue.push("default", [tracked("queued")])

        assert 60 >= stores.client.command("TTL", stores.queue.keys.state("a")) > 0
