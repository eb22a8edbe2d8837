"""Laravel's unique locks in another store than the jobs: in another database of Redis, in a database, in both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import StoreError
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending, Lock, Unlock
from queuepool.settlement.cancelled import cancel_waiting, cancelled_before, find_waiting
from queuepool.settlement.endings import Endings, commands_of
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.records import Returned
from queuepool.stores.sql.migrate import client_at, migrate
from queuepool.stores.sql.tables import TableNames
from tests.support.commands import queuepool
from tests.support.samples import new_jobs, payload, record

SYNC = "App\\Jobs\\Sync"
NAME = f"laravel_unique_job:{SYNC}:7"
RESTART = "illuminate:queue:restart"
#: Laravel's settings: how all keys of Redis begin, and all names of its caches
ALL, CACHE = "laravel-database-", "laravel-cache-"


pytestmark = pytest.mark.every_store("place")


@pytest.fixture
def database(sqlite_url: str) -> str:
    with closing(client_at(sqlite_url, TableNames())) as client:
        migrate(client)
    return sqlite_url


@pytest.fixture(params=["redis in redis", "redis in sql", "sql in redis", "sql in redis by control_url"])
def place(request: pytest.FixtureRequest, redis_url: str, database: str) -> tuple[ConnectionSettings, str, str]:
    """The settings of a queue of the first kind with Laravel's locks in the second, their URL and their key."""
    in_redis = f"{redis_url}?db=5"
    found = {
        "redis in redis": ({"url": redis_url, "lock_url": in_redis, "restart_key": f"{ALL}{CACHE}{RESTART}"}, in_redis),
        "redis in sql": (
            {"url": redis_url, "control_url": database, "restart_key": f"{CACHE}{RESTART}"}, database
        ),
        "sql in redis": (
            {
                "url": database, "control_url": f"{redis_url}?db=1", "lock_url": in_redis,
                "restart_key": f"{ALL}{CACHE}{RESTART}",
            },
            in_redis,
        ),
        "sql in redis by control_url": (
            {"url": database, "control_url": in_redis, "restart_key": f"{ALL}{CACHE}{RESTART}"}, in_redis
        ),
    }  # fmt: skip
    given, url = found[request.param]
    prefix = CACHE if url == database else f"{ALL}{CACHE}"
    return ConnectionSettings(prefix=ALL, **given), url, f"{prefix}{NAME}"


@pytest.fixture
def queue(place: tuple[ConnectionSettings, str, str]) -> Iterator[Queue]:
    with closing(Queue(place[0])) as queue:
        yield queue


def keys(queue: Queue) -> list[str]:
    """The locks in each place, without those in the jobs' own."""
    return [key for _, locks in queue.stores.laravel_locks for key in locks.all_keys()]


def test_python_and_laravel_take_the_same_lock_and_the_worker_ends_it(place, queue):
    settings, _, key = place

    assert queue.push_object(SYNC, {"number": 7}, unique_id="7")
    assert not queue.push_object(SYNC, {"number": 7}, unique_id="7")
    assert ([key], 1) == (keys(queue), queue.size())

    store = queue.stores.queue
    [lease] = store.reserve(["default"], store.join(), 1).leases
    [lock] = Endings(settings, commands_of(settings)).after(decode(lease.receipt)).unlocks
    assert NAME == lock.name
    assert store.finish(lease, Ending(unlocks=(lock,)))
    assert ([], False) == (keys(queue), store.locks_of.missed)


def test_a_lock_that_laravel_holds_keeps_python_from_pushing(place, queue):
    [(_, locks)] = queue.stores.laravel_locks
    assert locks.take(Lock(NAME, "laravel", 60.0))

    assert not queue.push_object(SYNC, {"number": 7}, unique_id="7")
    assert 0 == queue.size()


def test_a_job_of_pythons_own_has_its_lock_beside_it(place, queue):
    assert queue.push("sync", unique_id="7")
    assert [] == keys(queue)
    assert not queue.push("sync", unique_id="7")


def test_a_push_that_is_refused_leaves_no_lock(place, queue):
    with closing(Queue(place[0])) as other:
        if place[0].url.startswith("sqlite"):
            other.stores.client.ask(lambda c: c.exec_driver_sql("DROP TABLE jobs"))
        else:
            other.stores.client.command("SET", f"{ALL}queues:default", "no list")
    with pytest.raises(StoreError):
        queue.push_object(SYNC, {"number": 7}, unique_id="7")

    assert [] == keys(queue)


def test_no_transaction_covers_a_lock_elsewhere(place, queue):
    if queue.stores.borrowing is None:
        return
    with queue.stores.client.engine.begin() as connection, pytest.raises(ValueError, match="in another store"):
        queue.within(connection).push_object(SYNC, {"number": 7}, unique_id="7")


@pytest.mark.parametrize("fails", [False, True])
def test_a_release_that_finds_no_lock_is_noticed(place, queue, fails):
    store = queue.stores.queue
    queue.push("sync")
    store.push("default", new_jobs(payload("b"), payload("c")))
    first, second, third = store.reserve(["default"], store.join(), 3).leases

    def end(lease, *unlocks: Unlock) -> bool:
        ending = Ending(unlocks=unlocks)
        assert store.fail(lease, "a", record(lease), ending) if fails else store.finish(lease, ending)
        return store.locks_of.missed

    [(kind, locks)] = queue.stores.laravel_locks
    locks.take(Lock(NAME, "another", 60.0))

    assert end(first, Unlock(f"{NAME}0"), Unlock("laravel_unique_job:none", "me", kind))
    assert not end(second, Unlock(NAME, "me", kind))
    assert not end(third)
    store.unlock([Unlock(f"{NAME}0"), Unlock(NAME)])
    assert not store.locks_of.missed
    store.unlock([Unlock(NAME)])
    assert store.locks_of.missed


def test_a_lock_that_an_unanswered_call_has_ended_is_not_missed(place, queue):
    [(kind, locks)], store = queue.stores.laravel_locks, queue.stores.queue
    queue.push("sync")
    [lease] = store.reserve(["default"], store.join(), 1).leases
    assert locks.take(Lock(NAME, "me", 60.0))
    unlock = Unlock(NAME, "me", kind)

    store.locks_of.here([unlock])  # as far as the first call came
    assert store.finish(lease, Ending(unlocks=(unlock,)))
    assert not store.locks_of.missed


@pytest.mark.parametrize("how", ["cancel", "drop"])
def test_a_job_that_a_worker_takes_before_it_is_taken_out_keeps_its_lock(place, queue, how):
    store, locks = queue.stores.queue, HeldLocks(place[0])
    job_id = queue.push_object(SYNC, {"number": 7}, unique_id="7")
    waits = find_waiting(queue.stores, "default", job_id)
    assert waits
    [shelved] = store.walk("default", ["ready"]).page(10)

    def take_out() -> bool:
        if how == "cancel":
            return cancel_waiting(queue.stores, waits, cancelled_before(waits.payload, "ana@web"))
        return store.drop("default", [shelved], locks.waiting) == [True]

    tag = store.join()
    [lease] = store.reserve(["default"], tag, 1).leases
    assert (False, [place[2]]) == (take_out(), keys(queue))
    assert [True] == store.delete([lease])


@pytest.mark.parametrize("how", ["cancel", "drop"])
def test_a_job_that_is_taken_out_ends_its_lock(place, queue, how):
    store = queue.stores.queue
    job_id = queue.push_object(SYNC, {"number": 7}, unique_id="7")
    if how == "cancel":
        waits = find_waiting(queue.stores, "default", job_id)
        assert waits
        assert cancel_waiting(queue.stores, waits, cancelled_before(waits.payload, "ana@web"))
    else:
        [shelved] = store.walk("default", ["ready"]).page(10)
        assert [True] == store.drop("default", [shelved], HeldLocks(place[0]).waiting)

    assert ([], 0) == (keys(queue), queue.size())


def test_a_retried_object_takes_its_lock_among_laravels_again_and_a_cleared_one_ends_it(place, queue):
    store, failed, locks = queue.stores.queue, queue.stores.failed, HeldLocks(place[0])
    queue.push_object(SYNC, {"number": 7}, unique_id="7")
    [lease] = store.reserve(["default"], store.join(), 1).leases
    found = Ending(unlocks=tuple(locks.waiting.locks_of(lease.receipt)))
    assert store.fail(lease, "a", record(lease), found)
    assert [] == keys(queue)
    [job] = failed.page()

    def put_back() -> Returned:
        raw = job.payload.encode()
        return locks.put_back(queue.stores, raw, lambda lock: failed.retry(job, None, None, lock), ended=True)

    assert queue.push_object(SYNC, {"number": 7}, unique_id="7")
    assert Returned.HELD is put_back()
    assert ([place[2]], 1) == (keys(queue), queue.clear())
    assert [] == keys(queue)
    assert Returned.DONE is put_back()
    assert ([place[2]], 1) == (keys(queue), queue.size())


def test_the_locks_verb_lists_and_frees_laravels_too(place, queue, tmp_path):
    settings, url, _ = place
    queue.push_object(SYNC, {"number": 7}, unique_id="7")
    queue.push("sync", unique_id="7")
    where = written(settings, tmp_path)

    rows = json.loads(queuepool("locks", "list", "--json", *where).stdout)
    expected = [("laravel_unique_job:sync:7", kind_of(settings.url)), (NAME, kind_of(url))]
    assert expected == [(row["lock"], row["store"]) for row in rows]
    assert f"freed {NAME}\n" == queuepool("locks", "free", NAME, *where).stdout
    assert [] == keys(queue)


@pytest.mark.parametrize("place", ["redis in sql"], indirect=True)
def test_an_identity_is_as_long_as_the_database_of_laravels_locks_holds(place, queue):
    assert queue.push("sync", unique_id="x" * 300)
    with pytest.raises(ValueError, match="its unique lock has 3"):
        queue.push_object(SYNC, {}, unique_id="x" * 300)


def written(settings: ConnectionSettings, folder: Path, *more: str) -> tuple[str, str]:
    """The flags of a configuration file with these settings."""
    keys = ("url", "lock_url", "control_url", "restart_key", "prefix")
    lines = [f"{key} = {getattr(settings, key)}" for key in keys if getattr(settings, key)]
    (folder / "pool.ini").write_text("\n".join(["[connection]", *lines, *more]))
    return "-c", str(folder / "pool.ini")


def test_check_says_when_laravels_locks_cannot_be_read(place, queue, tmp_path):
    settings, url, _ = place
    words = queuepool("check", *written(settings, tmp_path, "lock_table = nowhere")).stdout

    assert ("the lock store is refused: " in words) == (url.startswith("sqlite"))
