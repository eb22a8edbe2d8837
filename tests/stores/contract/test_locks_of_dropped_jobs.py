"""A unique lock ends with its job, however that leaves its queue, and a job that is put back takes its lock again."""

from __future__ import annotations

from contextlib import closing

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import CONTEXT, decode
from queuepool.payload.lease import Ending, Lock, Unlock
from queuepool.payload.unique_locks import claimed, said_in
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.factory import Stores
from queuepool.stores.records import Returned
from tests.support.drivers import opened
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import OURS, drained, record


@pytest.fixture
def queue(built: Stores):
    with closing(Queue(built.settings)) as found:
        yield found


@pytest.fixture
def locks(built: Stores) -> HeldLocks:
    return HeldLocks(built.settings)


def pushed(queue: Queue, identity: str, *, delay: float = 0.0, name: str = "app.ok") -> bool:
    """Whether the lock was free; the job has it now."""
    return bool(queue.push(name, unique_id=identity, delay=delay))


def reserved(built: Stores):
    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    return lease


def unlock_in(raw: bytes) -> Unlock:
    found = said_in(decode(raw, 0).context)
    assert found
    return found


def failed(built: Stores, queue: Queue, identity: str = "a"):
    """A unique job that has failed; its lock was released with it."""
    assert pushed(queue, identity)
    lease = reserved(built)
    assert built.queue.fail(lease, identity, record(lease, identity), Ending(unlocks=(unlock_in(lease.receipt),)))
    return built.failed.get(identity)


def put_back(built: Stores, locks: HeldLocks, job) -> Returned:
    return locks.put_back(
        built, job.payload.encode(), lambda lock: built.failed.retry(job, None, None, lock), ended=True
    )


def test_a_clear_ends_the_locks_of_what_it_drops_and_no_others(built, queue, locks):
    for identity, delay in (("ready", 0.0), ("delayed", 60.0), ("reserved", 0.0)):
        assert pushed(queue, identity, delay=delay)
    queue.push("app.ok", queue="default")
    queue.push("app.ok", unique_id="elsewhere", queue="other")
    assert 1 == len(built.queue.reserve(["default"], OURS, 1).leases)

    assert 4 == queue.clear()
    assert [True] * 3 == [pushed(queue, identity) for identity in ("ready", "delayed", "reserved")]
    assert not pushed(queue, "elsewhere")


def test_a_lock_that_another_job_holds_by_now_stays(built, queue):
    assert pushed(queue, "a")
    next(iter(built.locks.values())).release([unlock_in(built.queue.first("default", 1)[0])])
    queue.push("app.ok", unique_id="a", queue="other")

    assert 1 == queue.clear()
    assert not pushed(queue, "a")


@pytest.mark.thorough("test_a_clear_ends_the_locks_of_what_it_drops_and_no_others")
@pytest.mark.every_store("connection")
def test_a_long_queue_is_dropped_in_steps_with_all_its_locks(built, queue):
    for part in range(2):  # more than one step drops of plain jobs, and reads of unique ones
        queue.bulk([("app.ok", {"number": number}) for number in range(600)])
        for number in range(part, 520, 2):
            assert pushed(queue, str(number), delay=60.0 * (number % 3 == 0))

    assert 1720 == queue.clear()
    assert 0 == queue.size()
    assert [] == [lock for place in built.locks.values() for lock in place.held()]
    if "redis" in built.locks:
        assert [] == built.queue.client.command("KEYS", f"{PREFIX}*")


def test_what_is_dropped_of_the_quarantine_ends_its_lock(built, queue, locks):
    assert pushed(queue, "a")
    lease = reserved(built)
    built.queue.quarantine(lease, "odd")
    [entry] = built.records.quarantined("default")

    assert not pushed(queue, "a")
    odd = entry.payload.replace(b'"data":null', b'"data":null,"data":1')
    assert [unlock_in(entry.payload)] == list(locks.set_aside.locks_of(odd))
    assert built.records.drop_quarantined("default", entry.id, locks.set_aside.locks_of(odd))
    assert pushed(queue, "a")


def test_what_is_put_back_from_the_quarantine_has_its_lock_or_stays(built, queue, locks):
    assert pushed(queue, "a")
    lease = reserved(built)
    built.queue.quarantine(lease, "odd")
    [entry] = built.records.quarantined("default")

    def back(lock):
        return built.records.requeue("default", entry.id, None, lock)

    own = unlock_in(entry.payload)
    next(iter(built.locks.values())).release([own])
    assert pushed(queue, "a")
    assert Returned.HELD is locks.put_back(built, entry.payload, back, ended=False)
    queue.clear()
    assert Returned.DONE is locks.put_back(built, entry.payload, back, ended=False)
    assert not pushed(queue, "a")
    assert Returned.GONE is locks.put_back(built, entry.payload, back, ended=False)


def test_a_retried_job_holds_its_lock_again(built, queue, locks):
    job = failed(built, queue)

    assert Returned.DONE is put_back(built, locks, job)
    assert not pushed(queue, "a")
    assert 1 == queue.clear()
    assert pushed(queue, "a")


def test_a_job_whose_lock_another_holds_is_not_retried_and_stays_recorded(built, queue, locks):
    job = failed(built, queue)
    assert pushed(queue, "a")

    assert Returned.HELD is put_back(built, locks, job)
    assert (1, 1) == (built.failed.count(), queue.size())
    drained(built.queue)


def test_a_tracked_job_is_retried_under_its_lock_too(built, queue, locks):
    queue.push("app.ok", unique_id="a", track=60)
    lease = reserved(built)
    built.queue.fail(lease, "a", record(lease), Ending(unlocks=(unlock_in(lease.receipt),)))
    job = built.failed.get("a")
    state = queue.job(decode(lease.receipt, 0).id)
    assert state

    def back(lock):
        from queuepool.settlement.states import pushed as said

        return built.failed.retry(job, None, said(decode(lease.receipt, 0).id, "app.ok", "default", 0.0), lock)

    assert Returned.DONE is locks.put_back(built, job.payload.encode(), back, ended=True)
    assert not pushed(queue, "a")


def test_a_forgotten_job_ends_the_lock_that_it_still_holds_and_no_other(built, queue, locks):
    assert pushed(queue, "a")
    lease = reserved(built)
    built.queue.fail(lease, "a", record(lease))  # without its lock, as where that is out of reach
    plain = failed(built, queue, "b")
    assert pushed(queue, "b")

    assert [True, True] == built.failed.drop([built.failed.get("a").key, plain.key], locks.set_aside)
    assert (True, False) == (pushed(queue, "a"), pushed(queue, "b"))


def test_the_locks_that_are_held_are_listed_with_their_owners(built, queue):
    assert pushed(queue, "a")
    [place] = built.locks.values()
    own = unlock_in(built.queue.first("default", 1)[0])

    [held] = place.held()
    assert (own.name, own.owner, True) == (held.name, held.owner, 86000 < held.seconds < 86500)
    assert {own.name: own.owner} == place.owners([own.name, "laravel_unique_job:none"])
    assert 1 == place.release([own])
    assert [] == list(place.held())


def test_a_lock_lasts_as_long_again_as_its_job_said(built, queue, locks):
    queue.push("app.ok", unique_id="a", unique_for=600)
    lease = reserved(built)
    built.queue.fail(lease, "a", record(lease), Ending(unlocks=(unlock_in(lease.receipt),)))
    put_back(built, locks, built.failed.get("a"))
    [place] = built.locks.values()

    assert [True] == [595 < held.seconds < 605 for held in place.held()]


LOOK_ALIKES = [
    "dQw4",
    "DQW4",
    "straße",
    "strasse",
    "résumé",
    "resume",
    "a",
    "a ",
    "a\t",
    "\u200ba",
    "😀",
    "😁",
    "",
    " ",
]


def test_identities_that_look_alike_are_different_ones(built, queue):
    assert [True] * len(LOOK_ALIKES) == [pushed(queue, identity) for identity in LOOK_ALIKES]
    assert [False] * len(LOOK_ALIKES) == [pushed(queue, identity) for identity in LOOK_ALIKES]
    assert pushed(queue, "a", name="app.OK")

    for lease in built.queue.reserve(["default"], OURS, 100).leases:
        assert built.queue.finish(lease, Ending(unlocks=HeldLocks(built.settings).waiting.locks_of(lease.receipt)))
    assert [True] * len(LOOK_ALIKES) == [pushed(queue, identity) for identity in LOOK_ALIKES]


def test_a_failed_store_apart_takes_and_ends_the_locks_beside_the_queue(redis_url, sqlite_url):
    apart = ConnectionSettings(url=redis_url, prefix=PREFIX, failed_url=sqlite_url)
    with opened(ConnectionSettings(url=sqlite_url, embedded=True)), closing(Stores(apart)) as built:
        assert built.forwarder
        queue, locks = Queue(apart), HeldLocks(apart)
        for end in ("retry", "forget"):
            assert pushed(queue, end)
            lease = reserved(built)
            built.queue.fail(lease, end, record(lease, end))  # without its lock
            built.forwarder.forward()
        retried, forgotten = built.failed.get("retry"), built.failed.get("forget")

        assert Returned.HELD is put_back(built, locks, retried)
        assert [True] == built.failed.drop([forgotten.key], locks.set_aside)
        assert pushed(queue, "forget")
        next(iter(built.locks.values())).release([unlock_in(retried.payload.encode())])
        assert Returned.DONE is put_back(built, locks, retried)
        assert (False, 0) == (pushed(queue, "retry"), built.failed.count())
        queue.close()


def test_a_lock_in_another_store_than_the_jobs_ends_and_is_taken_there(redis_url, sqlite_url):
    settings = ConnectionSettings(url=redis_url, prefix=PREFIX, control_url=sqlite_url)
    lock = Lock("laravel_unique_job:app.ok:a", "owner", 60.0)
    raw = payload("a", **{CONTEXT: claimed(None, lock, "sql")})
    with opened(ConnectionSettings(url=sqlite_url, embedded=True)), closing(Stores(settings)) as built:
        locks, place = HeldLocks(settings), built.locks[sqlite_url]
        assert place.take(lock)
        built.queue.push("default", new_jobs(raw))
        assert 1 == built.queue.clear("default", locks.waiting)
        assert [] == list(place.held())

        lease = reserved_raw(built, raw)
        assert built.queue.fail(lease, "a", record(lease))
        assert Returned.DONE is put_back(built, locks, built.failed.get("a"))
        assert [lock.name] == [held.name for held in place.held()]
        lease = built.queue.reserve(["default"], OURS, 1).leases[0]
        assert built.queue.fail(lease, "a", record(lease))
        assert place.release([Unlock(lock.name)])
        assert place.take(lock._replace(owner="another"))
        assert Returned.HELD is put_back(built, locks, built.failed.get("a"))


def reserved_raw(built: Stores, raw: bytes):
    built.queue.push("default", new_jobs(raw))
    return reserved(built)
