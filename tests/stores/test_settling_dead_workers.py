"""The steward settles a dead worker's slot and reports it."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from queuepool.board.board import Board, BoardName, Killed, Role, Slot
from queuepool.board.held_jobs import Stage
from queuepool.config.settings import ConnectionSettings
from queuepool.events import Event, JobQuarantined, WorkerDied
from queuepool.steward.settle_dead import SettleDead
from queuepool.stores.contract import QueueStore
from queuepool.stores.factory import Stores
from tests.support.burials import chore_on
from tests.support.drivers import opened
from tests.support.samples import new_jobs, payload

TAG = 7


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.create(tmp_path / str(BoardName.own()._replace(start_time=1)), capacity=1)  # its master is dead


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def bury(board: Board, told: list[Event], tmp_path: Path) -> Callable[[Stores], SettleDead]:
    """The chore on this board; its pool's directory is not there."""

    return lambda stores: chore_on(board, stores.queue, told, tmp_path)


def dead(board: Board, *, pid: int = 2**22, left: int = 0) -> Slot:
    """The slot of a worker that was killed while it asked."""
    slot = board.slots[0]
    slot.begin(Role.WORKER, 1, 1)
    slot.pid, slot.tag, slot.reserve_sent_at, slot.exited_cleanly = pid, TAG, time.monotonic(), left
    slot.status, slot.dead = signal.SIGKILL, 1
    return slot


def dead_of_its_job(board: Board, store: QueueStore) -> Slot:
    """Of the only try that the job has, where a death uses it up."""
    store.push("default", new_jobs(payload("a")))
    slot = dead(board)
    slot.policy = '{"tries": 1, "counts_deaths": true}'
    slot.hold(store.reserve(["default"], TAG, 1).leases)
    slot.hand.mark(0, Stage.RUNNING)
    return slot


def test_of_who_died_asking_is_told(stores, board, bury, told):
    dead(board)
    bury(stores).run(time.monotonic())

    assert [WorkerDied] == list(map(type, told))


@pytest.mark.parametrize("of_whom", [{"left": 1}, {"pid": 0}], ids=["left in order", "never forked"])
def test_of_who_left_without_an_answer_and_of_who_never_came_no_death_is_told(stores, board, bury, told, of_whom):
    slot = dead(board, **of_whom)
    bury(stores).run(time.monotonic())

    assert ([], slot.incarnation) == (told, slot.settled_incarnation)


def test_what_is_settled_is_written_down_job_by_job(stores, board, bury):
    slot = dead_of_its_job(board, stores.queue)
    bury(stores).run(time.monotonic())

    assert [Stage.SETTLED] == [one.stage for one in slot.hand.held()]
    assert ["a"] == [row.id for row in stores.failed.page()]


class Counting(logging.Handler):
    """What the workers are told of hooks that wait, at each line that is logged."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board, self.counts = board, []

    def emit(self, record: logging.LogRecord) -> None:
        self.counts.append(self.board.header.deferred_hooks)


def test_workers_hear_of_a_hook_that_waits_after_it_was_left_for_them(stores, board, bury):
    """Or they would look for it too early, and not again."""
    dead_of_its_job(board, stores.queue)
    heard = Counting(board)
    logging.getLogger("queuepool").addHandler(heard)
    bury(stores).run(time.monotonic())
    logging.getLogger("queuepool").removeHandler(heard)

    assert [0] == heard.counts  # that it cannot be left is told
    assert 1 == board.header.deferred_hooks


def test_what_the_tag_of_another_boots_worker_has_now_is_not_given_back(stores, board, bury):
    dead(board)
    board.name = board.name._replace(boot="00000000")
    stores.queue.push("default", new_jobs(payload("a")))
    stores.queue.reserve(["default"], TAG, 1)
    bury(stores).run(time.monotonic())

    assert 1 == stores.queue.sizes("default").reserved


def test_what_is_committed_after_a_burial_is_given_back_later(board, bury, postgres_url):
    with opened(ConnectionSettings(url=postgres_url)) as stores:
        chore, table = bury(stores), stores.queue
        dead(board)
        chore.run(time.monotonic())
        table.push("default", new_jobs(payload("a")))
        table.reserve(["default"], TAG, 1)

        chore.run(time.monotonic())
        assert 1 == table.sizes("default").reserved
        chore.run(time.monotonic() + table.commits_late)

        assert (1, 0) == (table.sizes("default").ready, table.sizes("default").reserved)


def dies_reading(board: Board, store: QueueStore, killed: Killed) -> None:
    """A worker that holds two jobs, and of the first one's payload."""
    slot = dead(board)
    slot.killed, slot.reserve_sent_at = killed, 0.0
    slot.hold(store.reserve(["default"], TAG, 2).leases)
    slot.hand.mark(0, Stage.READING)


@pytest.mark.parametrize("killed", [Killed.NOT, Killed.OVERDUE, Killed.LEASE, Killed.MEMORY])
@pytest.mark.by_turns("killed")
def test_what_two_workers_have_died_of_reading_is_set_aside_and_what_they_held_behind_it_goes_back(
    stores, board, bury, told, killed
):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    dies_reading(board, stores.queue, killed)
    bury(stores).run(time.monotonic())
    assert [payload("a"), payload("b")] == stores.queue.first("default", 9)

    dies_reading(board, stores.queue, killed)
    bury(stores).run(time.monotonic())

    assert [payload("b")] == stores.queue.first("default", 9)
    assert [("deadly", payload("a"))] == [(one.reason, one.payload) for one in stores.records.quarantined("default")]
    assert [JobQuarantined("default", "deadly")] == [event for event in told if isinstance(event, JobQuarantined)]

    [entry] = stores.records.quarantined("default")
    stores.queue.clear("default")
    stores.records.requeue("default", entry.id)
    dies_reading(board, stores.queue, killed)
    bury(stores).run(time.monotonic())
    assert 1 == stores.queue.sizes("default").ready  # put back by hand, it has two readers again


def test_who_was_told_to_stop_has_not_died_of_what_it_read(stores, board, bury):
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    for _ in range(3):
        dies_reading(board, stores.queue, Killed.STOP)
        bury(stores).run(time.monotonic())

    assert [payload("a"), payload("b")] == stores.queue.first("default", 9)
