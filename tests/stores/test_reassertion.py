"""Jobs whose reserve a promoted server does not know: their pool says that it has them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.blame import Blame
from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.held_jobs import Stage
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.errors import StoreDown
from queuepool.payload.lease import Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding
from queuepool.steward.leases import Reassert, Renew
from queuepool.steward.limits import LookAtLimits
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import NewJob
from queuepool.stores.factory import Stores
from queuepool.unix.signals import WorkerSignals
from tests.support.boards import process
from tests.support.redis_server import Server

JOBS = [b'{"uuid":"%d","attempts":%d}' % (number, number) for number in range(4)]


@pytest.fixture
def stores(redis_url: str) -> Iterator[Stores]:
    found = Stores(ConnectionSettings(url=redis_url))
    yield found
    found.close()


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


@pytest.fixture
def reassert(stores: Stores) -> Any:
    assert stores.reassertion
    return stores.reassertion.reassert


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """With a worker."""
    found = Board.create(tmp_path / "board.1-1", 1)
    process(found, 0, Role.WORKER, 0, State.IDLE)
    return found


@pytest.fixture
def slot(board: Board) -> Slot:
    return board.slots[0]


@pytest.fixture
def signals() -> WorkerSignals:
    return WorkerSignals()


@pytest.fixture
def boards(board: Board, tmp_path: Path) -> OrphanedBoards:
    return OrphanedBoards(board, RuntimeDir(PoolSettings(runtime_dir=tmp_path / "gone")), Blame(board.header))


@pytest.fixture
def chore(stores: Stores, boards: OrphanedBoards, signals: WorkerSignals) -> Reassert:
    """The steward's, on a connection that has yet to be made."""
    tells = stores.reassertion
    assert tells
    return Reassert(stores.queue, Renew(boards, stores.queue, 90.0), tells.follow, tells.reassert, signals.wake)


def lost(store: Any, jobs: list[bytes], delay: float = 0.0) -> list[Lease]:
    """Leases of these jobs on a server that had not handed on that they were reserved."""
    tag = store.join()
    store.push("default", [NewJob(job) for job in jobs])
    leases = list(store.reserve(["default"], tag, len(jobs)).leases)
    store.client.command("FLUSHALL")
    store.push("default", [NewJob(job) for job in jobs], delay)
    return leases


@pytest.mark.parametrize("delay", [0.0, 60.0], ids=["ready", "delayed"])
def test_a_job_whose_reserve_was_lost_is_taken_again_under_the_same_lease(store, reassert, delay):
    leases = lost(store, JOBS, delay)

    assert [True] == reassert([leases[1]])
    others = store.reserve(["default"], store.join(), 9).leases
    assert len(others) == (0 if delay else 3)
    assert leases[1].receipt not in [lease.receipt for lease in others]
    assert [True] == store.delete([leases[1]])


def test_what_another_worker_has_meanwhile_stays_his(store, reassert):
    leases = lost(store, JOBS)
    (taken,) = store.reserve(["default"], store.join(), 1).leases

    assert [False, True] == reassert(leases[:2])
    assert [True] == store.delete([taken])


def test_a_lease_that_the_server_knows_is_renewed(store, reassert):
    store.push("default", [NewJob(JOBS[0])])
    (lease,) = store.reserve(["default"], store.join(), 1).leases
    before = store.client.command("ZSCORE", "queues:default:reserved", lease.receipt)

    assert [True] == reassert([lease])
    assert float(store.client.command("ZSCORE", "queues:default:reserved", lease.receipt)) >= float(before)
    assert store.sizes("default").ready == 0


def test_a_job_that_is_gone_is_lost_and_a_key_of_a_wrong_type_concerns_its_queue_alone(store, reassert):
    (lease,) = lost(store, JOBS[:1])
    store.client.command("DEL", "queues:default")
    store.client.command("SET", "queues:other:reserved", "text")
    store.push("third", [NewJob(JOBS[2])])

    assert [False, False, True] == reassert([
        lease, Lease("other", lease.receipt, lease.tag), Lease("third", b'{"uuid":"2","attempts":3}', lease.tag)
    ])  # fmt: skip


def test_wake_up_tokens_are_those_of_the_jobs_that_are_left(store, reassert):
    leases = lost(store, JOBS)

    reassert(leases)
    assert 0 == store.client.command("LLEN", "queues:default:notify")


def test_a_job_that_has_ended_while_there_was_no_server_is_held_until_it_is_settled(stores, store, slot, chore):
    """Else it would be taken before its worker can settle it, and run again. What is settled is others'."""
    leases = lost(store, JOBS[:3])
    slot.hold(leases)
    for number, stage in enumerate((Stage.SETTLED, Stage.DONE, Stage.RUNNING)):
        slot.hand.mark(number, stage)

    stores.close()
    chore.run(0.0)
    assert slot.lease_end == 0.0
    assert [False, True, True] == store.delete(leases)
    assert 1 == store.sizes("default").ready


def runs(slot: Slot, lease: Lease) -> None:
    """Its worker begins the job of this lease, which it believes to have for a minute and a half."""
    slot.hold([lease])
    slot.hand.mark(0, Stage.RUNNING)
    slot.lease_end, slot.state = time.monotonic() + 90.0, State.BUSY


@pytest.mark.parametrize("is_late", [False, True], ids=["shown in time", "shown late"])
def test_who_runs_what_another_has_on_the_new_server_is_killed_at_the_next_look(stores, store, slot, chore, is_late):
    """Also if its worker had not shown it at the first look: the next renewal may be half a minute away."""
    lease, *_ = lost(store, JOBS[:1])
    if not is_late:
        runs(slot, lease)
    assert store.reserve(["default"], store.join(), 1).leases

    stores.close()
    at = 100.0 + chore.run(100.0)
    if is_late:
        runs(slot, lease)
        at += chore.run(at)
    chore.run(at)
    assert at < 100.5
    assert slot.lease_deadline <= time.monotonic()
    assert chore.run(102.0) == 1.0


def test_a_done_job_that_is_deleted_by_the_request_for_the_next_ones_ends_nobody(stores, store, slot, chore):
    """While a slow job runs behind it, the board shows it as done, and the worker has nothing to write."""
    store.push("default", [NewJob(job) for job in JOBS[:2]])
    done, slow = leases = store.reserve(["default"], store.join(), 2).leases
    slot.hold(leases)
    slot.hand.mark(0, Stage.DONE)
    slot.hand.mark(1, Stage.RUNNING)
    slot.lease_end, slot.state, slot.current_index = time.monotonic() + 90.0, State.BUSY, 1
    assert [True] == store.delete([done])

    stores.close()
    at = 100.0
    for _ in range(4):
        at += chore.run(at)
    assert slot.lease_deadline > time.monotonic() + 60.0
    assert [True] == store.delete([slow])


def test_a_place_lasts_as_long_as_the_lease_also_before_the_steward_has_looked_at_limits(
    stores, store, board, boards, slot, redis_url
):
    store.push("default", [NewJob(JOBS[0])])
    (lease,) = store.reserve(["default"], store.join(), 1).leases
    runs(slot, lease)
    with closing(Stores(ConnectionSettings(url=redis_url))) as workers:
        assert workers.limits.enter(holding(lease), "0", [PlaceAsked("few", NO_PART, 1)]).is_in
    board.header.limits_at = time.monotonic()
    renew = Renew(boards, store, 90.0, LookAtLimits(stores.limits, board.header).notice)

    store.clock = str(int(store.now()) + 60)
    renew.run(0.0)
    lease_ends = float(store.client.command("ZSCORE", "queues:default:reserved", lease.receipt))
    _, place_ends = store.client.command("ZRANGE", store.keys.of_limit("held", "few"), 0, -1, "WITHSCORES")
    assert -1.0 < lease_ends - float(place_ends) < 0.2  # on grids of their own


def test_the_chore_is_next_where_another_one_has_found_the_new_server(stores, chore, signals):
    assert not signals.begin_round()
    stores.queue.sizes("default")

    assert signals.begin_round()
    assert chore.run(100.0) < 1.0


def test_a_steward_is_told_of_the_first_server_and_of_each_other_one(tmp_path):
    """The first counts as well: the steward before this one may have died as the servers changed."""
    server, calls = Server(str(tmp_path)), list[int]()
    with closing(Stores(ConnectionSettings(url=f"unix://{server.path}"))) as stores:
        assert stores.reassertion
        stores.reassertion.follow(lambda: calls.append(1))
        for _ in range(2):
            stores.queue.reach()
            stores.close()  # the same one answers again
        assert [1] == calls

        server.kill()
        server.start()
        stores.queue.reach()
    server.kill()
    assert [1, 1] == calls


def test_a_worker_waits_for_stewards_from_the_moment_at_which_another_server_takes_writes(tmp_path):
    server = Server(str(tmp_path), "--replica-serve-stale-data", "no")
    with closing(Stores(ConnectionSettings(url=f"unix://{server.path}"))) as stores:
        assert stores.reassertion
        stores.reassertion.come_after()
        tag = stores.queue.join()
        server.kill()
        with pytest.raises(StoreDown):
            stores.queue.reserve(["default"], tag, 1)
        server.start()
        server.say("REPLICAOF", "127.0.0.1", "1")  # it says who it is, and refuses all else
        for _ in range(2):
            with pytest.raises(StoreDown):
                stores.queue.reserve(["default"], tag, 1)

        began = time.monotonic()
        server.say("REPLICAOF", "NO", "ONE")
        stores.queue.reserve(["default"], tag, 1)
        waited = time.monotonic() - began
    server.kill()

    assert waited >= 0.3
