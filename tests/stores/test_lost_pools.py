"""A pool that is lost is told once, by one of the others; one that has left, or is somebody's predecessor, is not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.board import Board, BoardName
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDown
from queuepool.events import Event, PoolLost
from queuepool.events.listeners import Listeners
from queuepool.search.ended import attempts_of
from queuepool.steward.attempts import RecordLost
from queuepool.steward.publish import PoolNotice, Publish, WatchPools, forget_loss
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.factory import Stores
from queuepool.stores.values import AlertClaim
from tests.support.redis_server import PREFIX

POOLS = f"{PREFIX}queuepool:pools"


class Watching:
    """One pool that looks."""

    def __init__(self, stores: Stores, instance: str) -> None:
        self.stores = stores
        self.lost: list[PoolLost] = []
        self.chore = WatchPools(instance, stores.control, stores.values, self)

    def emit(self, event: Event) -> None:
        assert isinstance(event, PoolLost)
        self.lost.append(event)

    def look(self) -> None:
        self.chore.run(0.0)


def publish(server, host: str, pool: str, instance: str, ago: float = 0.0, **facts: Any) -> None:
    """A notice of so many seconds ago."""
    notice = {"host": host, "pool": pool, "id": instance, "at": server.time()[0] - ago, **facts}
    server.hset(POOLS, f"{host}:{pool}:{instance}", json.dumps(notice))


def test_a_loss_is_told_once_by_all_pools_together_with_what_it_ran(stores, server):
    worker = {"role": "worker", "job": {"name": "charge", "id": "abc"}}
    publish(server, "web1", "p", "aa")
    publish(server, "web2", "p", "bb", ago=40, processes=[worker])
    publish(server, "web3", "p", "cc", ago=20)
    several = [Watching(stores, name) for name in ("aa", "dd", "ee")]
    for _ in range(3):
        for one in several:
            one.look()
        server.delete(f"{PREFIX}queuepool:alert:look:pools")  # its time is over

    [lost] = [event for one in several for event in one.lost]
    assert ("p", "web2", "bb", "it ran charge abc") == (lost.pool, lost.host, lost.id, lost.ran)
    assert 40 <= lost.silent < 60


@pytest.mark.parametrize("ahead", [50, 3600, 10**9])
def test_a_notice_from_the_future_makes_no_pool_lost(stores, server, ahead):
    publish(server, "web1", "p", "aa")
    publish(server, "web2", "p", "bb", ago=20)
    publish(server, "evil", "p", "ee", ago=-ahead)
    watching = Watching(stores, "aa")
    watching.look()

    assert [] == watching.lost


def test_what_it_ran_is_recorded_as_lost(stores, server):
    job = {"name": "charge", "id": "abc", "queue": "high", "attempt": 2, "since": "2026-11-23T03:01:10Z"}
    worker = {"role": "worker", "number": 3, "pid": 77, "generation": 5, "job": job}
    publish(server, "web1", "p", "aa")
    publish(server, "web2", "p", "bb", ago=40, processes=[worker])
    publish(server, "web3", "p", "cc", ago=40, processes="damaged")
    WatchPools("aa", stores.control, stores.values, Listeners(), RecordLost(stores.attempts, 60.0)).run(0.0)

    [lost] = attempts_of(stores, ["high"], "abc")
    assert ("charge", 2, "lost", True) == (lost.name, lost.attempts, lost.outcome, lost.is_lost)
    assert ("web2", "p", 3, 77, 5) == (lost.host, lost.pool, lost.worker, lost.pid, lost.generation)
    assert 1_795_402_870.0 == lost.began
    assert lost.seconds is None


def test_what_it_ran_is_recorded_by_a_pool_that_keeps_records_whoever_has_told_of_it(stores, server):
    job = {"name": "charge", "id": "abc", "queue": "high", "attempt": 2, "since": "2026-11-23T03:01:10Z"}
    publish(server, "web1", "p", "aa")
    publish(server, "web2", "p", "bb", ago=40, processes=[{"role": "worker", "number": 3, "pid": 77, "job": job}])
    told, written = Watching(stores, "aa"), list[Mapping[str, Any]]()

    def look(instance: str, record: Callable[[Mapping[str, Any]], object]) -> None:
        server.delete(f"{PREFIX}queuepool:alert:look:pools")  # its time is over
        WatchPools(instance, stores.control, stores.values, told, record).run(0.0)

    def away(notice: object) -> None:
        raise StoreDown("gone")

    told.look()
    with pytest.raises(StoreDown):
        look("dd", away)
    server.delete(*server.keys(f"{PREFIX}queuepool:alert:recorded:bb:*"))  # the time of that try is over
    for instance in "ee", "ff":
        look(instance, written.append)
    assert ["bb"] == [event.id for event in told.lost]
    assert ["bb"] == [notice["id"] for notice in written]


def test_a_key_of_another_type_costs_the_records_of_its_queue_alone(stores, server):
    jobs = [{"name": "charge", "id": queue, "queue": queue, "attempt": 1} for queue in ("broken", "high")]
    processes = [{"role": "worker", "number": 3, "pid": 77, "job": job} for job in jobs]
    server.set(f"{PREFIX}queuepool:attempts:broken", "theirs")
    RecordLost(stores.attempts, 60.0)({"host": "web2", "pool": "p", "at": 1.0, "processes": processes})

    assert 1 == len(attempts_of(stores, ["high"], "high"))


def test_of_two_pools_of_one_name_the_lost_one_is_told(stores, server):
    publish(server, "web1", "p", "aa")
    publish(server, "web1", "p", "bb", ago=40)
    watching = Watching(stores, "aa")
    watching.look()

    assert ["bb"] == [event.id for event in watching.lost]


def test_one_pool_looks_for_all(stores, server):
    publish(server, "web1", "p", "aa")
    publish(server, "web1", "p", "bb", ago=40)
    first, second = Watching(stores, "aa"), Watching(stores, "dd")
    assert AlertClaim.TAKEN is stores.values.claim_alert("look:pools", "somebody", 60.0)
    first.look()
    second.look()

    assert [] == first.lost + second.lost


def test_the_next_loss_of_a_pool_that_came_back_is_told_again(stores, server):
    publish(server, "web1", "p", "aa")
    publish(server, "web1", "p", "bb", ago=40)
    watching = Watching(stores, "aa")
    watching.look()
    forget_loss(stores.values, "bb")
    server.delete(f"{PREFIX}queuepool:alert:look:pools")
    watching.look()

    assert 2 == len(watching.lost)


# What a pool publishes


@pytest.fixture
def board(tmp_path: Path) -> Board:
    found = Board.create(tmp_path / str(BoardName.own()), capacity=10)
    found.header.since = time.time()
    return found


def publisher(stores: Stores, board: Board, folder: Path) -> Publish:
    pool = PoolSettings(connection=stores.settings)
    notice = PoolNotice(pool, board, folder, {}, stores.queue.now)
    return Publish(notice, board, stores.control, stores.values)


def ids(stores: Stores) -> list[str]:
    return sorted(str(notice["id"]) for notice in stores.control.pools(NOTICE_KEPT))


def test_a_pool_that_has_left_is_known_for_a_while_and_not_as_lost(stores, board, tmp_path):
    chore = publisher(stores, board, tmp_path)
    chore.run(time.monotonic())
    [before] = ids(stores)
    chore.withdraw()
    [left] = stores.control.left()

    assert ([], board.name.instance, before) == (ids(stores), before, left["id"])


def test_a_killed_predecessor_in_its_place_is_replaced_and_a_pool_that_lives_is_not(stores, server, board, tmp_path):
    """Of another container nothing but its notice can be seen: it lives if it publishes after us."""
    board.header.since = time.time() - 10
    chore = publisher(stores, board, tmp_path)
    own = chore._notice._place
    gone = str(BoardName(2**22 + 1, 1, board.name.boot, board.name.namespace))
    elsewhere = str(BoardName(1, 1, "another0", "1"))
    publish(server, own["host"], "default", "killed", 13, runtime_directory=str(tmp_path), board=gone)
    publish(server, own["host"], "default", "silent", 13, runtime_directory=str(tmp_path), board=elsewhere)
    publish(server, own["host"], "default", "beside", 13, runtime_directory=str(tmp_path), board=elsewhere)
    publish(server, own["host"], "default", "elsewhere", 13, runtime_directory="/srv/run", board=elsewhere)
    chore.run(time.monotonic())
    first = ids(stores)
    publish(server, own["host"], "default", "beside", 0, runtime_directory=str(tmp_path), board=elsewhere)
    for _ in range(4):
        chore.run(time.monotonic())

    instance = board.name.instance
    assert sorted([instance, "beside", "silent", "elsewhere"]) == first
    assert sorted([instance, "beside", "elsewhere"]) == ids(stores)


@pytest.mark.bad_input("B168")
def test_a_notice_in_its_place_with_an_endless_number_ends_no_steward(stores, server, board, tmp_path):
    chore = publisher(stores, board, tmp_path)
    wild = f"board.{'9' * 5000}-1-0a1b2c3d-4"
    publish(server, chore._notice.host, "default", "wild", 3, runtime_directory=str(tmp_path), board=wild)
    chore.run(time.monotonic())

    assert sorted([board.name.instance, "wild"]) == ids(stores)


def test_a_later_steward_takes_no_silent_pool_for_a_predecessor(stores, server, board, tmp_path):
    board.header.since = time.time() - 600
    chore = publisher(stores, board, tmp_path)
    place = {"runtime_directory": str(tmp_path), "board": str(BoardName(1, 1, "another0", "1"))}
    publish(server, chore._notice.host, "default", "silent", 3, **place)
    for _ in range(5):
        chore.run(time.monotonic())

    assert sorted([board.name.instance, "silent"]) == ids(stores)


def test_equal_pids_of_two_containers_are_two_instances():
    names = [BoardName(1, start, "0a1b2c3d", space) for start, space in ((5, "40"), (5, "41"), (6, "40"))]

    assert 3 == len({name.instance for name in names})
    assert names[0].instance == BoardName(*names[0]).instance
