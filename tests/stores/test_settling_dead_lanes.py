"""The steward settles what a worker of several jobs held when it died: each as the ruling on that death says."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.board import Board, BoardName, Killed, Role, Slot
from queuepool.board.counts import counts_of
from queuepool.board.held_jobs import Stage
from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE
from queuepool.board.lane_writer import LaneJobs, LaneWriter
from queuepool.board.meters import MeterMemory
from queuepool.errors import BadPayload
from queuepool.events import Event, StoreRefused
from queuepool.payload.lease import Tallies
from queuepool.settlement.verdict import Policy
from queuepool.steward.settle_dead import SettleDead
from queuepool.stores.contract import QueueStore
from queuepool.stores.factory import Stores
from tests.support.burials import chore_on
from tests.support.samples import ids, new_jobs, payload

TAG = 7
#: the jobs of lanes 0, 1 and 2
IDS = "abc"
ONCE = Policy(tries=1, max_crashes=1).to_text()


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """Of a master that is dead."""
    path = tmp_path / str(BoardName.own()._replace(start_time=1))
    board = Board.create(path, capacity=1, lanes=3).mapped()
    board.meters = MeterMemory.new(1, 0)
    return board


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def steward(board: Board, told: list[Event], tmp_path: Path) -> Callable[[QueueStore], SettleDead]:
    """A new one, with nothing but the board."""
    return lambda store: chore_on(board, store, told, tmp_path)


@pytest.fixture
def slot(board: Board, stores: Stores) -> Slot:
    """Of a worker that ran three jobs, each in its first attempt, and has died by an exit of its own."""
    stores.queue.push("default", new_jobs(*map(payload, IDS)))
    return dead(board.slots[0], stores)


def dead(slot: Slot, stores: Stores) -> Slot:
    """The first job had a deadline, a second and a half ago."""
    slot.begin(Role.WORKER, 1, 1)
    writer, now = LaneWriter(slot.lanes), time.monotonic()
    for lease in stores.queue.reserve(["default"], TAG, 3).leases:
        job = ids([lease])[0]
        lane, deadline = IDS.index(job), now - 1.5 if job == "a" else 0.0
        writer.take(lane, lease, now + 90.0)
        kind = LaneJobs(ONCE, "app.ok")
        writer.begins(lane, kind, job_id=job, attempt=1, since=time.time(), deadline=deadline)
    slot.pid, slot.tag, slot.status, slot.dead = 2**22, TAG, 7 << 8, 1
    return slot


def ran(slot: Slot, lane: int, since: float) -> None:
    """The step of this lane had the processor, for so many seconds before now."""
    slot.lanes.wholes[ON_CPU], slot.lanes.reals[ON_CPU_SINCE] = lane + 1, time.monotonic() - since


def given_back(stores: Stores) -> set[str]:
    """The jobs that wait as if they had never begun."""
    waiting = stores.queue.first("default", 9)
    return {job for job in IDS if payload(job) in waiting and Tallies() == stores.queue.tallies(job)}


def failed(stores: Stores) -> dict[str, str]:
    """By job: the last line of its record."""
    return {row.id: row.exception.splitlines()[0] for row in stores.failed.page()}


class Died(BaseException):
    """A steward was killed."""


class Short:
    """The store, as a steward uses it that is killed once it has settled so many jobs."""

    def __init__(self, store: QueueStore, most: int) -> None:
        self._store = store
        self._left = most

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        return self._last(verb) if name in ("release", "fail", "give_back") else verb

    def _last(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if not self._left:
                raise Died
            self._left -= 1
            return verb(*args)

        return call


@pytest.mark.parametrize("settled", [0, 1, 2, 3])
def test_a_steward_carries_out_what_the_one_before_it_has_ruled(stores, slot, steward, settled):
    """The first job was told to end and did not: once it is settled, nothing shows who did it."""
    slot.status, now = int(signal.SIGALRM), time.monotonic()
    writer = LaneWriter(slot.lanes)
    writer.told(0)
    writer.free_for(0.9)
    if settled < 3:
        with pytest.raises(Died):
            steward(Short(stores.queue, settled)).run(now)
    steward(stores.queue).run(now)

    assert {"b", "c"} == given_back(stores)
    assert ["a"] == list(failed(stores))
    assert "ran past its deadline" in failed(stores)["a"]


def test_a_ruling_is_of_one_death_alone(stores, slot, steward, board):
    slot.lanes.rule(slot.incarnation + 1, {0: 3, 1: 9, 2: 9})
    ran(slot, 1, since=0.1)
    steward(stores.queue).run(time.monotonic())

    assert ({"a", "c"}, ["b"]) == (given_back(stores), list(failed(stores)))


# A worker whose main thread hung


def test_nobody_answers_for_a_worker_that_hung_by_itself(stores, slot, steward):
    slot.killed, slot.status = Killed.STALLED, int(signal.SIGKILL)
    ran(slot, 1, since=0.1)
    steward(stores.queue).run(time.monotonic())

    assert (set(IDS), {}) == (given_back(stores), failed(stores))


def test_the_job_at_which_its_worker_hung_has_used_up_its_try_as_one_that_runs_alone(stores, slot, steward):
    slot.killed, slot.status = Killed.STALLED, int(signal.SIGKILL)
    LaneWriter(slot.lanes).settles(2)
    steward(stores.queue).run(time.monotonic())

    assert {"a", "b"} == given_back(stores)
    assert "TimedOut: app.ok (attempt 1) had ended when its worker stalled" in failed(stores)["c"]


def test_a_payload_at_which_two_workers_hung_is_set_aside(stores, slot, steward):
    for found in (slot, None):
        again = found or dead(slot, stores)
        again.killed, again.status = Killed.STALLED, int(signal.SIGKILL)
        again.lanes.mark(1, Stage.READING)
        steward(stores.queue).run(time.monotonic())

    assert [("deadly", payload("b"))] == [(one.reason, one.payload) for one in stores.records.quarantined("default")]
    assert {"a", "c"} == given_back(stores)


def test_who_kept_the_processor_while_its_worker_hung_has_blocked_it(stores, slot, steward):
    slot.killed, slot.status = Killed.STALLED, int(signal.SIGKILL)
    ran(slot, 1, since=40.0)
    steward(stores.queue).run(time.monotonic())

    assert {"a", "c"} == given_back(stores)
    assert "blocked the event loop of its worker: killed by the master: its main thread hung" in failed(stores)["b"]


def test_what_was_read_when_a_kill_came_from_outside_is_not_put_aside_for_that(stores, slot, steward):
    """Beside others: a payload that kills whoever reads it shows when it is read alone, or by a fault."""
    for found in (slot, None):
        again = found or dead(slot, stores)
        again.status = int(signal.SIGKILL)
        again.lanes.mark(1, Stage.READING)
        steward(stores.queue).run(time.monotonic())

    assert [] == list(stores.records.quarantined("default"))


# One job that cannot be settled


def counts(board: Board) -> dict[str, int]:
    """How many attempts ended, and why those that are lost."""
    found = counts_of(board).jobs["default", "app.ok"]
    return {"ended": found.ended, "crash": found.crash}


def test_what_the_store_refuses_for_one_job_does_not_hold_up_its_neighbours(stores, slot, steward, board, told, server):
    server.set(stores.queue.keys.tallies("a"), "no hash")
    ran(slot, 0, since=0.1)
    steward(stores.queue).run(time.monotonic())

    assert {"b", "c"} == given_back(stores)
    assert 1 == stores.queue.sizes("default").reserved  # until its lease ends
    assert [StoreRefused] == [type(event) for event in told if isinstance(event, StoreRefused)]
    assert {"ended": 3, "crash": 1} == counts(board)
    assert slot.incarnation == slot.settled_incarnation


def test_a_job_that_stewards_die_of_is_left_aside_and_its_neighbours_are_not(stores, slot, steward, board):
    receipt = next(one.lease.receipt for one in slot.lanes.held() if one.lane == 0)
    at = board.memory[0 : len(board.memory)].find(receipt)
    board.memory[at : at + 1] = b"x"
    for _ in range(2):
        with pytest.raises(BadPayload):
            steward(stores.queue).run(time.monotonic())
    steward(stores.queue).run(time.monotonic())

    assert slot.incarnation == slot.settled_incarnation
    assert 1 == stores.queue.sizes("default").reserved
    assert {"b", "c"} == {json.loads(raw)["id"] for raw in stores.queue.first("default", 9)}
    assert {"ended": 3, "crash": 3} == counts(board)


def test_a_lane_whose_policy_cannot_be_read_is_no_job_and_its_neighbours_are(stores, slot, steward, board):
    """As one that was longer than there is room for."""
    place = board.memory[0 : len(board.memory)].find(ONCE.encode())
    board.memory[place : place + 1] = b"x"
    ran(slot, 2, since=0.1)
    steward(stores.queue).run(time.monotonic())

    assert ({"b"}, ["c"]) == (given_back(stores), list(failed(stores)))
    assert 1 == stores.queue.sizes("default").reserved
