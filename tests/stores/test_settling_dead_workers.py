"""The steward settles a dead worker's slot and reports it."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from queuepool.board import cancel_orders
from queuepool.board.board import Board, BoardName, Killed, Role, Slot, State
from queuepool.board.cancel_orders import CancelOrder
from queuepool.board.held_jobs import Stage
from queuepool.config.settings import ConnectionSettings
from queuepool.config.values import MAX_AHEAD
from queuepool.events import Event, JobCancelled, JobFailed, JobGivenBack, JobQuarantined, ProcessDied
from queuepool.payload.envelope import decode
from queuepool.search.ended import attempts_of
from queuepool.settlement.attempts import AttemptRecords
from queuepool.settlement.verdict import RanBy
from queuepool.steward.settle_dead import SettleDead
from queuepool.stores.contract import QueueStore
from queuepool.stores.factory import Stores
from tests.support.burials import chore_on, chores_on
from tests.support.drivers import connection_of, opened
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


def dead(board: Board, *, pid: int = 2**22, left: int = 0, number: int = 1) -> Slot:
    """The slot of a worker that was killed while it asked."""
    slot = board.slots[number - 1]
    slot.begin(Role.WORKER, number, 1)
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

    assert [ProcessDied] == list(map(type, told))


def test_what_may_not_wait_is_looked_after_between_two_deaths(stores, told, tmp_path):
    board = Board.create(tmp_path / str(BoardName.own()._replace(start_time=1)), capacity=2)
    for number in (1, 2):
        dead(board, number=number)
    settled = list[int]()
    chore = chore_on(board, stores.queue, told, tmp_path, between=lambda: settled.append(len(told)))
    chore.run(time.monotonic())

    assert [0, 1, 2] == sorted({*settled})


def test_what_may_not_wait_is_looked_after_between_the_steps_of_one_death(stores, board, told, tmp_path):
    """There may be many of them, and others may keep each waiting at the store."""
    store = stores.queue
    store.push("default", new_jobs(payload("done"), payload("open"), payload("unbegun")))
    slot = dead(board)
    slot.hold(store.reserve(["default"], TAG, 3).leases)
    slot.hand.mark(0, Stage.DONE)
    slot.hand.mark(1, Stage.RUNNING)
    seen = list[tuple[int, int]]()

    def look() -> None:
        sizes = store.sizes("default")
        seen.append((sizes.ready, sizes.reserved))

    chore_on(board, store, told, tmp_path, between=look).run(time.monotonic())

    assert [(0, 3), (1, 2), (1, 1), (2, 0)] == [sizes for sizes, _ in groupby(seen)]


def test_what_it_ran_and_what_it_had_done_is_recorded_as_its_own(stores, board, told, tmp_path):
    store = stores.queue
    store.push("default", new_jobs(payload("done"), payload("open"), payload("unbegun")))
    slot = dead(board, pid=4711)
    slot.hold(store.reserve(["default"], TAG, 3).leases)
    slot.hand.mark(0, Stage.DONE)
    slot.hand.mark(1, Stage.RUNNING)
    records = AttemptRecords(60.0, "main", RanBy(1, 0, 0))
    chore_on(board, store, told, tmp_path, records).run(time.monotonic())

    [done] = attempts_of(stores, ["default"], "done")
    [lost] = attempts_of(stores, ["default"], "open")
    assert [("done", ""), ("lost", "released")] == [(one.outcome, one.then) for one in (done, lost)]
    assert [(4711, 1, 1)] * 2 == [(one.pid, one.worker, one.generation) for one in (done, lost)]
    assert "SIGKILL" in lost.error
    assert [] == attempts_of(stores, ["default"], "unbegun")


@pytest.mark.parametrize("driver", ["redis", "sqlite"])
def test_the_last_row_of_a_dead_worker_is_written_with_what_gives_its_job_back(request, driver, board, bury):
    with opened(connection_of(driver, request)) as stores:
        stores.queue.push("default", new_jobs(payload("a")))
        slot = dead(board)
        slot.policy = '{"tries": 0}'
        [lease] = stores.queue.reserve(["default"], slot.tag, 1).leases
        stores.steps.keep(lease, "a", {"charge": b"1", "~rows": b"41"})
        slot.hold([lease])
        slot.job_id, slot.state = "a", State.BUSY
        slot.place.show("a", "", b"")
        slot.place.show("a", "~rows", b"42")
        slot.hand.mark(0, Stage.RUNNING)
        bury(stores).run(time.monotonic())

        assert 1 == stores.queue.sizes("default").ready
        assert {"charge": b"1", "~rows": b"42"} == stores.steps.of_job("a")


@pytest.mark.parametrize("driver", ["redis", "sqlite"])
def test_the_steps_of_what_a_dead_worker_had_done_are_forgotten(request, driver, board, bury):
    with opened(connection_of(driver, request)) as stores:
        stores.queue.push("default", new_jobs(payload("first"), payload("a")))
        slot = dead(board)
        leases = stores.queue.reserve(["default"], slot.tag, 2).leases
        stores.steps.keep(leases[1], "a", {"charge": b"1"})
        slot.hold(leases)
        slot.job_id, slot.state, slot.current_index = "a", State.BUSY, 1
        slot.place.show("a", "", b"")
        for number in range(2):
            slot.hand.mark(number, Stage.DONE)
        bury(stores).run(time.monotonic())

        assert 0 == stores.queue.sizes("default").total
        assert {} == stores.steps.of_job("a")


def test_what_was_taken_from_behind_a_slow_job_was_not_lost_though_its_worker_dies_in_that(
    stores, board, told, tmp_path
):
    stores.queue.push("default", new_jobs(payload("done"), payload("slow")))
    slot = board.slots[0]
    slot.begin(Role.WORKER, 1, 1)
    slot.pid, slot.tag, slot.state, slot.current_index = 4711, TAG, State.BUSY, 1
    slot.hold(stores.queue.reserve(["default"], TAG, 2).leases)
    slot.hand.mark(0, Stage.DONE)
    slot.hand.mark(1, Stage.RUNNING)
    records, now = AttemptRecords(60.0, "main", RanBy(1, 0, 0)), time.monotonic()
    settle, give_back = chores_on(board, stores.queue, told, tmp_path, records)
    give_back.run(now)
    give_back.run(now + 1.0)
    [taken] = attempts_of(stores, ["default"], "done")
    assert ("done", False, 4711) == (taken.outcome, taken.is_lost, taken.pid)

    slot.status, slot.dead = signal.SIGKILL, 1
    settle.run(now)
    [one] = attempts_of(stores, ["default"], "done")
    assert ("done", False) == (one.outcome, one.is_lost)
    assert ["lost"] == [one.outcome for one in attempts_of(stores, ["default"], "slow")]


def test_the_most_that_may_wait_behind_a_slow_job_is_back_within_a_tenth_of_a_second_of_its_start(
    stores, board, told, tmp_path
):
    """At the pace that the chore itself asks for, with a job that begins just after a look."""
    stores.queue.push("default", new_jobs(*(payload(str(number)) for number in range(MAX_AHEAD))))
    slot = board.slots[0]
    slot.begin(Role.WORKER, 1, 1)
    slot.pid, slot.tag, slot.state = 4711, TAG, State.BUSY
    slot.hold(stores.queue.reserve(["default"], TAG, MAX_AHEAD).leases)
    slot.hand.mark(0, Stage.DONE)
    _, give_back = chores_on(board, stores.queue, told, tmp_path)
    began = now = time.monotonic()
    pause = give_back.run(now)
    slot.current_index = 1
    slot.hand.mark(1, Stage.RUNNING)
    while not stores.queue.sizes("default").ready and now < began + 1.0:
        now += pause + 0.001  # a look takes a moment
        pause = give_back.run(now)

    assert now - began <= 0.1
    assert (MAX_AHEAD - 2, 1) == (stores.queue.sizes("default").ready, stores.queue.sizes("default").reserved)


def test_an_attempt_that_has_ended_with_its_lease_is_recorded_as_lost_and_its_job_is_left_alone(
    stores, board, told, tmp_path
):
    stores.queue.push("default", new_jobs(payload("a")))
    slot = dead(board, pid=4711)
    slot.killed = Killed.LEASE
    slot.hold(stores.queue.reserve(["default"], TAG, 1).leases)
    slot.hand.mark(0, Stage.RUNNING)
    records = AttemptRecords(60.0, "main", RanBy(1, 0, 0), stores.attempts)
    chore_on(board, stores.queue, told, tmp_path, records).run(time.monotonic())

    [one] = attempts_of(stores, ["default"], "a")
    assert ("lost", 1, 4711, True) == (one.outcome, one.attempts, one.pid, one.is_lost)
    assert (0, 1) == (stores.queue.sizes("default").ready, stores.queue.sizes("default").reserved)


def test_a_job_given_back_by_a_stopped_worker_is_recorded_as_stopped(stores, board, told, tmp_path):
    stores.queue.push("default", new_jobs(payload("a")))
    slot = dead(board)
    slot.killed = Killed.STOP
    slot.hold(stores.queue.reserve(["default"], TAG, 1).leases)
    slot.hand.mark(0, Stage.RUNNING)
    chore_on(board, stores.queue, told, tmp_path, AttemptRecords(60.0, "main", RanBy(1, 0, 0))).run(time.monotonic())

    [one] = attempts_of(stores, ["default"], "a")
    assert ("stopped", "queued", 1) == (one.outcome, one.then, one.attempts)
    assert 1 == stores.queue.sizes("default").ready


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
        now = time.monotonic()
        chore.run(now)
        table.push("default", new_jobs(payload("a")))
        table.reserve(["default"], TAG, 1)

        chore.run(now)
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


# Cancelled jobs: the order on the slot names one attempt.


def cancelled(board: Board, store: QueueStore, index: int = 0, *, requeue: bool = False) -> Slot:
    """A worker of two jobs that was killed at the first one, for an order to end the attempt at this one."""
    store.push("default", new_jobs(payload("a"), payload("b")))
    slot = dead(board)
    slot.reserve_sent_at = 0.0
    slot.hold(store.reserve(["default"], TAG, 2).leases)
    slot.hand.mark(0, Stage.RUNNING)
    order = CancelOrder(slot.incarnation, slot.hand_number, index, requeue, 0.0, time.monotonic(), "ana@web")
    cancel_orders.write(slot, order)
    slot.killed = Killed.CANCELLED
    return slot


def attempts_of_all(store: QueueStore) -> list[tuple[str, int]]:
    """What waits, in order: each with the attempt that it is at when it is reserved."""
    found = [decode(one.receipt, one.attempts) for one in store.reserve(["default"], TAG + 1, 9).leases]
    return [(one.id, one.attempts) for one in found]


def test_a_cancelled_attempt_has_failed_and_what_was_held_beside_it_goes_back(stores, board, bury, told):
    slot = cancelled(board, stores.queue)
    bury(stores).run(time.monotonic())

    [failed] = stores.failed.page()
    assert "a" == failed.id
    assert failed.exception.startswith("Cancelled: app.ok (attempt 1): cancelled by ana@web while it ran")
    assert [("b", 1)] == attempts_of_all(stores.queue)
    assert [JobCancelled, JobFailed, JobGivenBack] == [type(event) for event in told]
    assert slot.cancel_at == slot.cancel_done
    assert slot.settled_incarnation == slot.incarnation


def test_an_attempt_that_was_hit_in_place_of_another_is_given_back_as_if_never_begun(stores, board, bury, told):
    slot = cancelled(board, stores.queue, index=7)
    bury(stores).run(time.monotonic())

    assert [] == stores.failed.page()
    assert [("a", 1), ("b", 1)] == sorted(attempts_of_all(stores.queue))
    assert {JobGivenBack} == {type(event) for event in told}
    assert 0.0 == slot.cancel_done


def test_an_order_of_another_life_or_hand_is_none_for_this_attempt(stores, board, bury):
    slot = cancelled(board, stores.queue)
    slot.cancel_life += 1
    bury(stores).run(time.monotonic())

    assert [] == stores.failed.page()


def test_whatever_its_worker_died_of_meanwhile_the_job_is_cancelled(stores, board, bury):
    slot = cancelled(board, stores.queue)
    slot.killed, slot.status = Killed.OVERDUE, signal.SIGSEGV
    bury(stores).run(time.monotonic())

    assert ["a"] == [row.id for row in stores.failed.page() if row.exception.startswith("Cancelled: ")]


def test_once_the_lease_is_lost_another_worker_has_the_job(stores, board, bury):
    slot = cancelled(board, stores.queue)
    slot.killed = Killed.LEASE
    bury(stores).run(time.monotonic())

    assert [] == stores.failed.page()


def test_a_requeued_one_goes_back_and_its_attempt_does_not_count(stores, board, bury, told):
    slot = cancelled(board, stores.queue, requeue=True)
    bury(stores).run(time.monotonic())

    assert [] == stores.failed.page()
    assert [("a", 1), ("b", 1)] == sorted(attempts_of_all(stores.queue))
    assert [JobCancelled, JobGivenBack, JobGivenBack] == [type(event) for event in told]
    assert slot.cancel_at == slot.cancel_done
