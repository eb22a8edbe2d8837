"""The settler carries out verdicts: what it writes, what it emits, and what a refusal leaves untouched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.events import (
    Event,
    JobFacts,
    JobFailed,
    JobGivenBack,
    JobQuarantined,
    JobReleased,
    LeaseLost,
    PayloadOdd,
    StoreRefused,
)
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, Payload, decode
from queuepool.payload.lease import Lease, Lock, Tallies, Unlock
from queuepool.payload.unique_locks import claimed
from queuepool.settlement.facts import facts_of
from queuepool.settlement.missed_locks import MissedLocks
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settlement, Settler
from queuepool.settlement.verdict import Delete, Fail, Release, Verdict
from queuepool.stores.factory import Stores
from queuepool.unix.signals import WorkerSignals
from tests.support.lossy_proxy import LossyProxy
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs, payload

MAIN = ConnectionSettings(name="main")
ERROR = ValueError("told to")
VERDICTS: list[Verdict] = [Delete(), Release(0.0), Release(5.0), Fail(ERROR)]


@pytest.fixture
def told() -> list[Event]:
    return []


def settler(
    stores: Stores,
    told: list[Event],
    attention: WorkerSignals | None = None,
    connection: ConnectionSettings = MAIN,
    meanwhile: Callable[[], None] | None = None,
) -> Settler:
    """One that is never told to stop, unless ``attention`` says so."""
    listeners = Listeners()
    listeners.add(Event, told.append)
    outage = Outage(attention or WorkerSignals(), listeners, announces=False, meanwhile=meanwhile)
    return Settler(stores.queue, outage, listeners, connection)


def reserved(stores: Stores) -> tuple[Lease, Payload]:
    stores.queue.push("default", new_jobs(payload("a")))
    [lease] = stores.queue.reserve(["default"], 1, 1).leases
    return lease, decode(lease.receipt)


def test_what_is_done_is_deleted_without_a_word(stores, told):
    lease, found = reserved(stores)

    writer = settler(stores, told)
    assert writer.settle(Settlement(lease, found, Delete()))
    assert [] == told
    writer.emit_noted()
    assert ([], 0) == (told, stores.queue.sizes("default").total)


def test_a_lock_that_is_not_where_it_should_be_is_told_once_for_each_name(stores, told):
    """Laravel drops each later dispatch while it holds one elsewhere."""
    writer = settler(stores, told, connection=stores.settings)
    for job in ("app.one", "app.one", "app.two", "app.held"):
        claim = claimed(None, Lock(f"laravel_unique_job:{job}:7", "me", 60.0), "redis")
        raw = payload(job, job=job, displayName=job, **{CONTEXT: claim})
        if job == "app.held":
            stores.queue.push("default", new_jobs(raw), 0.0, Lock(f"laravel_unique_job:{job}:7", "me", 60.0))
        else:
            stores.queue.push("default", new_jobs(raw))
        [lease] = stores.queue.reserve(["default"], 1, 1).leases
        assert writer.settle(Settlement(lease, decode(lease.receipt), Delete()))
    writer.emit_noted()

    odd = [event for event in told if isinstance(event, PayloadOdd)]
    assert ["app.one", "app.two"] == [event.job.name for event in odd]
    assert "the pusher uses another url, prefix or restart_key" in odd[0].oddity


def test_the_setting_is_named_where_laravel_has_the_lock_elsewhere(stores, told):
    lock = Unlock("laravel_unique_job:none")
    for key, setting in (
        ("illuminate:queue:restart", "set restart_key"),
        ("c-illuminate:queue:restart", "set lock_url"),
    ):
        stores.queue.push("default", new_jobs(payload("a", job=OBJECT_JOB, data={"commandName": "X"})))
        [lease] = stores.queue.reserve(["default"], 1, 1).leases
        found = decode(lease.receipt)
        missed = MissedLocks(ConnectionSettings(restart_key=key), stores.queue.locks_of)
        stores.queue.unlock([lock])
        facts = facts_of(found, "default")
        assert None is missed.at_end(facts, found, Release(0.0))
        assert None is missed.at_start(facts, found._replace(attempts=2))
        event = missed.at_start(facts, found)
        assert event
        assert setting in event.oddity
        assert None is missed.at_end(facts, found, Delete())


def test_what_is_released_is_told_with_its_delay_and_its_reason(stores, told):
    lease, found = reserved(stores)

    writer = settler(stores, told)
    assert writer.settle(Settlement(lease, found, Release(5.0), ERROR, "exceptions"))
    assert [] == told
    writer.emit_noted()
    assert [JobReleased(facts_of(found, "default"), 5.0, ERROR)] == told
    assert (1, Tallies(exceptions=1)) == (stores.queue.sizes("default").delayed, stores.queue.tallies("a"))


def test_what_failed_is_recorded_and_told(stores, told):
    lease, found = reserved(stores)

    writer = settler(stores, told)
    assert writer.settle(Settlement(lease, found, Fail(ERROR), ERROR))
    assert [] == told
    writer.emit_noted()
    assert [JobFailed(facts_of(found, "default"), ERROR)] == told
    [record] = stores.failed.page()
    assert ("a", "app.ok", "default", "main", 1, lease.receipt.decode()) == (
        record.id,
        record.name,
        record.queue,
        record.connection,
        record.attempts,
        record.payload,
    )
    assert "ValueError: told to" in record.exception


def test_what_is_given_back_is_told(stores, told):
    lease, found = reserved(stores)

    writer = settler(stores, told)
    assert writer.give_back(lease)
    assert [] == told
    writer.emit_noted()
    assert [JobGivenBack(facts_of(found, "default"))] == told
    assert payload("a") == stores.queue.sizes("default").oldest


def test_of_what_is_put_back_is_told_what_nobody_had_put_back_before(stores, told):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    first, second = stores.queue.reserve(["default"], 1, 2).leases
    stores.queue.give_back([first])

    writer = settler(stores, told)
    writer.give_back_unstarted([first, second])
    writer.emit_noted()
    assert [JobGivenBack(facts_of(decode(second.receipt), "default"))] == told
    assert 2 == stores.queue.sizes("default").ready


def test_what_the_store_refuses_of_some_is_asked_for_each(stores, told, server):
    """It is told once, and the others are in their order."""
    for queue, jobs in {"broken": "xy", "default": "ab"}.items():
        stores.queue.push(queue, new_jobs(*map(payload, jobs)))
    held = stores.queue.reserve(["broken", "default"], 1, 4).leases
    server.set(stores.queue.keys.ready("broken"), "no list")

    writer = settler(stores, told)
    writer.give_back_unstarted(held)
    writer.emit_noted()
    assert [payload("a"), payload("b")] == stores.queue.first("default", 9)
    assert ["broken"] == [event.queue for event in told if isinstance(event, StoreRefused)]


def test_what_the_store_refuses_of_one_queue_is_asked_at_once_for_the_others(stores, told, server):
    """For each job of that queue it shows that it lives: there may be a thousand."""
    for queue, count in {"broken": 3, "default": 50}.items():
        stores.queue.push(queue, new_jobs(*(payload(f"{queue}{number}") for number in range(count))))
    held = stores.queue.reserve(["broken", "default"], 1, 53).leases
    server.set(stores.queue.keys.ready("broken"), "no list")
    refused: list[int] = []

    writer = settler(stores, told, meanwhile=lambda: refused.append(1))
    writer.give_back_unstarted(held)

    assert 5 == len(refused), "all, the queue, and each of its jobs"
    assert [payload(f"default{number}") for number in range(50)] == stores.queue.first("default", 99)


def test_what_is_put_back_and_cannot_be_read_is_told_with_its_queue_alone(stores, told):
    stores.queue.push("default", new_jobs(b'{"id":[],"attempts":0}'))

    writer = settler(stores, told)
    writer.give_back_unstarted(stores.queue.reserve(["default"], 1, 1).leases)
    writer.emit_noted()
    assert [JobGivenBack(JobFacts("", "", "", "default", 0))] == told


def test_what_is_reclaimed_is_told(stores, told):
    _, found = reserved(stores)

    writer = settler(stores, told)
    writer.reclaim(["default"], 1, 1.0, known=())
    writer.emit_noted()
    assert [JobGivenBack(facts_of(found, "default"))] == told


def test_what_is_set_aside_is_told_with_one_word(stores, told):
    writer = settler(stores, told)
    writer.quarantine(reserved(stores)[0], "odd")
    writer.emit_noted()

    assert [JobQuarantined("default", "odd")] == told
    assert 1 == stores.queue.sizes("default").quarantined


def test_many_that_are_done_are_deleted_at_once(stores, told):
    leases = [reserved(stores)[0] for _ in range(3)]

    settler(stores, told).delete(leases)

    assert 0 == stores.queue.sizes("default").total


@pytest.mark.fault("F62")
@pytest.mark.parametrize("verdict", VERDICTS, ids=repr)
def test_a_job_that_is_not_ours_any_more_is_told_and_nothing_is_written(stores, told, verdict):
    lease, found = reserved(stores)
    stores.queue.give_back([lease])

    writer = settler(stores, told)
    assert not writer.settle(Settlement(lease, found, verdict, ERROR, "crashes"))
    assert [] == told
    writer.emit_noted()
    assert [LeaseLost(facts_of(found, "default"))] == told
    assert (payload("a"), 0, Tallies()) == (
        stores.queue.sizes("default").oldest,
        stores.failed.count(),
        stores.queue.tallies("a"),
    )


@pytest.mark.parametrize("verdict", VERDICTS, ids=repr)
def test_what_the_store_refuses_is_told(stores, server, told, verdict):
    lease, found = reserved(stores)
    server.set(f"{PREFIX}queues:default:reserved", "x")

    writer = settler(stores, told)
    assert not writer.settle(Settlement(lease, found, verdict))
    assert [] == told
    writer.emit_noted()
    assert [StoreRefused] == [type(event) for event in told]
    assert "WRONGTYPE" in told[0].problem  # type: ignore[attr-defined]


@pytest.fixture
def lossy(redis_socket: str, connection: Any, tmp_path: Any, stores: Stores) -> Iterator[tuple[LossyProxy, Stores]]:
    """A connection that has been used once, on a server that knows the scripts."""
    for settle in (stores.queue.delete, stores.queue.give_back):
        settle([reserved(stores)[0]])
    stores.queue.release(reserved(stores)[0], 0.0, "warm")
    stores.queue.fail(reserved(stores)[0], "warm", {"id": "warm"})
    stores.failed.drop([row.key for row in stores.failed.page()])
    stores.queue.clear("default")
    with LossyProxy(redis_socket, tmp_path) as proxy:
        unlucky = Stores(dataclasses.replace(connection, url=f"unix://{proxy.path}"))
        unlucky.queue.join()
        yield proxy, unlucky
        unlucky.close()


@pytest.mark.fault("F53")
@pytest.mark.parametrize("verdict", VERDICTS, ids=repr)
def test_a_settlement_whose_reply_is_lost_is_carried_out_once_and_counts_as_ours(stores, lossy, told, verdict):
    proxy, unlucky = lossy
    lease, found = reserved(stores)
    proxy.lose_the_next_reply()

    assert settler(unlucky, told).settle(Settlement(lease, found, verdict))
    assert LeaseLost not in [type(event) for event in told]
    left = stores.queue.sizes("default")
    assert 1 == left.total + stores.failed.count() + (Delete() == verdict)
    assert 0 == left.reserved


def test_a_verdict_that_went_unanswered_is_known_until_it_is_answered(stores, lossy, told):
    proxy, unlucky = lossy
    lease, found = reserved(stores)
    writer = Settler(
        unlucky.queue, Outage(WorkerSignals(), Listeners(), announces=False, retries=False), Listeners(), MAIN
    )
    proxy.lose_the_next_reply()

    with pytest.raises(StoreDown):
        writer.settle(Settlement(lease, found, Release(0.0), ERROR, "crashes"))
    # Executed: whoever judged anew would count a crash more, and might fail what has been released.
    assert (Tallies(crashes=1), Release(0.0)) == (stores.queue.tallies("a"), writer.unanswered_verdict(lease))
    assert writer.settle(Settlement(lease, found, Release(0.0), ERROR, "crashes"))
    assert (Tallies(crashes=1), None) == (stores.queue.tallies("a"), writer.unanswered_verdict(lease))


def test_a_stop_ends_the_insisting_while_the_store_is_away(stores, lossy, told):
    proxy, unlucky = lossy
    lease, found = reserved(stores)
    attention = WorkerSignals()
    attention.stop = True
    proxy.lose_the_next_reply()

    with pytest.raises(StoreDown):
        settler(unlucky, told, attention).settle(Settlement(lease, found, Delete()))
    assert [] == told
