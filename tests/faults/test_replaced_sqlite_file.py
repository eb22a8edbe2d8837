"""SQLite's file is deleted, moved or replaced while a pool and producers have it open."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from tests.support.eventually import eventually
from tests.support.kept_attempts import kept, kept_ids, noted
from tests.support.pools import RunningPool, Site
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, record, reserved

#: what stands beside a file that is in use
BESIDE = ("-wal", "-shm")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queuepool.db"


@pytest.fixture
def settings(file: Path) -> ConnectionSettings:
    return ConnectionSettings(url=f"sqlite:///{file}", embedded=True)


@pytest.fixture
def worker(settings: ConnectionSettings) -> Iterator[Stores]:
    """What one worker or steward has open."""
    stores = Stores(settings)
    yield stores
    stores.close()


@pytest.fixture
def producer(settings: ConnectionSettings) -> Iterator[Queue]:
    queue = Queue(settings)
    yield queue
    queue.close()


@pytest.fixture
def site(settings: ConnectionSettings, tmp_path: Path, producer: Queue) -> Site:
    return Site(settings, tmp_path, producer)


def delete(file: Path, *beside: str) -> None:
    """As ``rm`` does."""
    for path in (file, *(Path(f"{file}{end}") for end in beside)):
        path.unlink(missing_ok=True)


def move(file: Path, to: Path, *beside: str) -> None:
    """As ``mv`` does."""
    for end in ("", *beside):
        if (source := Path(f"{file}{end}")).exists():
            source.rename(f"{to}{end}")


def fresh_file(place: Path, name: str) -> Path:
    """Another queue with one job of this name, closed by all who used it."""
    queue = Queue(ConnectionSettings(url=f"sqlite:///{place / 'fresh.db'}", embedded=True))
    queue.push("do", {"mode": "ok", "tag": name})
    queue.close()
    return place / "fresh.db"


def rows(file: Path, statement: str = "SELECT count(*) FROM jobs") -> Any:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement).fetchone()[0]


def next_ids(stores: Stores) -> list[str]:
    """As a worker does it: after an outage it asks again."""
    for _ in range(3):
        try:
            return ids(stores.queue.reserve(["default"], OURS, 10).leases)
        except StoreDown:
            continue
    raise AssertionError("it does not open what is there")


# A pool


def tags(site: Site) -> set[str]:
    return {line["tag"] for line in site.trail(event="end")}


def told(pool: RunningPool, words: str) -> int:
    return pool.log().count(words)


@pytest.mark.by_turns("beside")
@pytest.mark.parametrize("beside", [BESIDE, ()], ids=["all three files", "the file alone"])
def test_a_pool_goes_on_with_the_file_that_a_push_makes_anew(site, file, beside):
    with site.pool("--workers", "2") as pool:
        site.push(tag="before")
        eventually(lambda: {"before"} == tags(site))
        delete(file, *beside)
        site.push(tag="after")
        eventually(lambda: "after" in tags(site))
        eventually(lambda: told(pool, "store regained"))

        assert (1, 1) == (told(pool, "store lost"), told(pool, "store regained"))
        assert str(file) in pool.log()
    assert (0, "ok") == (rows(file), rows(file, "PRAGMA integrity_check"))


@pytest.mark.thorough("the first test has a file that is another")
def test_a_pool_goes_on_with_a_file_that_is_renamed_over_its_own(site, file, tmp_path):
    fresh = fresh_file(tmp_path, "theirs")
    with site.pool("--workers", "2") as pool:
        site.push(tag="before")
        eventually(lambda: {"before"} == tags(site))
        delete(file, *BESIDE)
        fresh.rename(file)
        eventually(lambda: {"before", "theirs"} == tags(site))
        site.push(tag="after")
        eventually(lambda: {"before", "theirs", "after"} == tags(site))
        eventually(lambda: 1 == told(pool, "store regained"))
        assert 1 == told(pool, "store lost")


def test_a_job_that_runs_meanwhile_is_settled_where_it_came_from_and_its_worker_lives(site, file, tmp_path):
    gate, kept = site.path / "gate", tmp_path / "kept.db"
    short = "[connection]\nretry_after = 5\n"
    with site.pool("--workers", "2", config=short) as pool:
        site.push("until", gate=str(gate), tag="old")
        eventually(lambda: site.trail(event="start"))
        before = set(pool.workers())
        move(file, kept, *BESIDE)
        site.push(tag="new")
        eventually(lambda: "new" in tags(site))
        ends = site.trail(event="start")[0]["at"] + 7
        eventually(lambda: time.time() > ends)  # longer than its lease
        gate.touch()
        eventually(lambda: "old" in tags(site))
        assert before == set(pool.workers())
        assert (0, 0) == (told(pool, "lease lost"), told(pool, "killed"))

    assert (0, 0) == (rows(file), rows(kept))
    assert 1 == len(site.trail(event="start", tag="old"))


@pytest.mark.thorough("the first test has a file that is another")
def test_a_file_that_is_away_for_a_moment_is_waited_for_and_no_other_is_made(site, file, tmp_path):
    away, gate = tmp_path / "away.db", site.path / "gate"
    with site.pool("--workers", "2") as pool:
        site.push("until", gate=str(gate), tag="old")
        eventually(lambda: site.trail(event="start"))
        move(file, away)
        eventually(lambda: told(pool, "store lost"))
        gate.touch()
        eventually(lambda: "old" in tags(site))
        assert not file.exists()
        move(away, file)
        eventually(lambda: told(pool, "store regained"))
        site.push(tag="new")
        eventually(lambda: {"old", "new"} == tags(site))
        eventually(lambda: 0 == site.queue.size())
    assert 1 == len(site.trail(event="start", tag="old"))


# One store


def test_a_worker_that_waits_returns_when_the_file_is_another(worker, producer, file, tmp_path):
    producer.push("first")
    next_ids(worker)
    worker.queue.wait(["default"], 0.1)
    waiting = threading.Thread(target=worker.queue.wait, args=(["default"], 60.0), daemon=True)
    waiting.start()
    eventually(lambda: any("sleep" in channel for channel in wait_channels()))
    delete(file, *BESIDE)
    fresh_file(tmp_path, "b").rename(file)

    waiting.join(30.0)
    assert not waiting.is_alive()
    assert 1 == len(next_ids(worker))


def wait_channels() -> list[str]:
    """What the kernel has our threads wait in, but for the one that asks."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if int(task.name) != threading.get_native_id()]
    return [Path(task, "wchan").read_text() for task in tasks]


def test_an_attempt_at_a_job_of_the_former_file_is_recorded_once_and_was_not_lost(worker, file, tmp_path):
    [finished, deleted] = reserved(worker.queue, payload("a"), payload("b"))
    delete(file, *BESIDE)
    fresh_file(tmp_path, "c").rename(file)
    with pytest.raises(StoreDown):
        worker.queue.sizes("default")

    assert [True] == worker.queue.delete([noted(finished)])
    assert [] == worker.queue.reserve(["default"], OURS, 0, [noted(deleted)]).refused
    assert ["a", "b"] == kept_ids(worker)
    assert [False, False] == [one.is_lost for one in kept(worker)]


def test_it_is_told_once_which_file_was_replaced(worker, producer, file):
    producer.push("first")
    next_ids(worker)
    delete(file, *BESIDE)
    with pytest.raises(StoreDown, match=f"there is no file {file}"):
        worker.queue.reach()
    assert not file.exists()
    producer.push("second")
    with pytest.raises(StoreDown, match=f"{file} was replaced"):
        worker.queue.reach()
    worker.queue.join()
    worker.queue.reach()


SETTLEMENTS = {
    "deleted with the next reserve": lambda queue, lease: not queue.reserve(["default"], OURS, 0, [lease]).refused,
    "deleted": lambda queue, lease: queue.delete([lease])[0],
    "released": lambda queue, lease: queue.release(lease, 60.0, "a"),
    "given back": lambda queue, lease: queue.give_back([lease])[0],
    "failed": lambda queue, lease: queue.fail(lease, "a", record(lease)),
    "renewed": lambda queue, lease: queue.renew([lease])[0],
}


@pytest.mark.by_turns("settle")
@pytest.mark.parametrize("settle", SETTLEMENTS.values(), ids=SETTLEMENTS)
def test_a_job_is_settled_in_the_file_that_it_came_from(worker, producer, file, tmp_path, settle):
    [lease] = reserved(worker.queue, payload("a"))
    kept = tmp_path / "kept.db"
    move(file, kept, *BESIDE)
    # The same number, attempt and tag: but another job, which nobody may touch.
    producer.push_raw(payload("b"))
    with pytest.raises(StoreDown):
        worker.queue.reach()

    assert settle(worker.queue, lease)
    worker.close()
    assert 1 == producer.sizes().total
    assert not settle(Stores(worker.settings).queue, lease)


def test_the_old_file_is_given_up_when_nothing_of_it_is_held(worker, producer, file):
    reserved(worker.queue, payload("a"))
    delete(file, *BESIDE)
    producer.push_raw(payload("b"))

    assert ["b"] == next_ids(worker)
    assert [] == [path for path in open_files() if path.endswith("(deleted)") and file.name in path]


def open_files() -> Iterator[str]:
    for link in Path("/proc/self/fd").iterdir():
        if link.is_symlink():
            yield os.readlink(link)


def test_a_producer_that_has_the_file_open_pushes_to_the_new_one(producer, file, tmp_path):
    producer.push_raw(payload("a"))
    delete(file, *BESIDE)
    fresh_file(tmp_path, "b").rename(file)
    producer.push_raw(payload("c"))

    assert 2 == rows(file)


def refused_as_the_file_is_replaced(file: Path, tmp_path: Path, act: Callable[[], object]) -> None:
    """Move the file to ``old.db`` and put another one in its place, under its lock, for which ``act`` waits."""
    fresh = fresh_file(tmp_path, "c")  # not under the lock: it takes dozens of fsyncs
    with closing(sqlite3.connect(file, isolation_level=None)) as owner, ThreadPoolExecutor(1) as other:
        owner.execute("BEGIN IMMEDIATE")
        done = other.submit(act)
        eventually(lambda: any("sleep" in channel for channel in wait_channels()))
        move(file, tmp_path / "old.db", *BESIDE)
        fresh.rename(file)
        owner.execute("ROLLBACK")
        with pytest.raises(StoreDown, match="replaced meanwhile"):
            done.result()


@pytest.mark.parametrize("shared", [False, True], ids=["worker", "producer"])
def test_what_waits_for_a_lock_is_not_written_to_a_file_that_is_replaced_under_it(settings, file, tmp_path, shared):
    """Whoever copies the file under its lock, and puts the copy in its place, has all that anybody was promised."""
    stores = Stores(settings, shared=shared, reply_timeout=60.0)
    stores.queue.push("default", new_jobs(payload("a")))
    refused_as_the_file_is_replaced(file, tmp_path, lambda: stores.queue.push("default", new_jobs(payload("b"))))

    stores.close()
    assert (1, 1) == (rows(file), rows(tmp_path / "old.db"))


@pytest.mark.parametrize("verb", ["reserve", "delete", "release"])
def test_who_waits_for_a_lock_takes_and_ends_nothing_in_a_file_that_is_replaced(settings, file, tmp_path, verb):
    """These begin their transactions themselves, where a database can do all in one round trip."""
    stores = Stores(settings, reply_timeout=60.0)
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    tag = stores.queue.join()
    [held] = stores.queue.reserve(["default"], tag, 1).leases
    act: dict[str, Callable[[], object]] = {
        "reserve": lambda: stores.queue.reserve(["default"], tag, 1),
        "delete": lambda: stores.queue.delete([held]),
        "release": lambda: stores.queue.release(held, 60.0, "a"),
    }
    refused_as_the_file_is_replaced(file, tmp_path, act[verb])

    stores.close()
    assert [1, 2] == [rows(tmp_path / "old.db", f"SELECT count({what}) FROM jobs") for what in ("reserved_at", "id")]


def test_what_a_deleted_file_left_beside_does_not_come_back_in_the_new_one(worker, producer, file):
    producer.bulk([("old", None)] * 50)
    next_ids(worker)
    delete(file)
    producer.push_raw(payload("b"))

    assert 1 == rows(file)
    assert ["b"] == next_ids(worker)
    assert "ok" == rows(file, "PRAGMA integrity_check")


def test_a_log_that_a_moved_file_left_behind_is_written_into_it(worker, file, tmp_path):
    """``mv`` of the file alone: its last commits are still in the log beside its old name."""
    worker.queue.push("default", new_jobs(payload("a"), payload("b")))
    kept = tmp_path / "kept.db"
    move(file, kept)
    shutil.copy(fresh_file(tmp_path, "c"), file)
    with pytest.raises(StoreDown):
        worker.queue.reach()

    assert 1 == worker.queue.sizes("default").total
    worker.close()
    assert (1, 2) == (rows(file), rows(kept))
