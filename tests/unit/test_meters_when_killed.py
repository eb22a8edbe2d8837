"""An attempt counts exactly once, whichever of its writes is the last one of a process that is killed."""

from __future__ import annotations

import itertools

import pytest

from queuepool.board import meter_layout as layout
from queuepool.board.board import Board, Role, Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.meters import new_memory, read
from queuepool.board.slot_meters import SlotMeters
from queuepool.payload.envelope import decode, encode
from queuepool.payload.lease import Lease
from queuepool.settlement.verdict import Fail, Release
from queuepool.steward.count_dead import DeadWorker
from queuepool.worker.meter import Meter

_, RAW = encode("app.ok", {}, created_at=1000)
PAYLOAD = decode(RAW)._replace(attempts=1)


class Killed(BaseException):
    """The process ends here."""


class Words:
    """The memory of a process that is killed at its n-th store: what comes later is not written."""

    def __init__(self, words, life) -> None:
        self._words, self._life = words, life

    def __getitem__(self, at):
        return self._words[at]

    def __setitem__(self, at, value) -> None:
        if next(self._life) == 0:
            raise Killed
        self._words[at] = value


@pytest.fixture
def board(tmp_path):
    board = Board.create(tmp_path / "board.1-1", 2)
    board.meters = new_memory(2)
    board.slots[0].begin(Role.WORKER, 1, 1)
    board.slots[0].hold([Lease("default", RAW, 1)])
    return board


def living(board, stores: int) -> tuple[Meter, Slot, itertools.count]:
    """A worker that is killed after so many stores, in the meters or of a stage on the board."""
    meter, life = Meter(SlotMeters(board.meters, 0)), itertools.count(stores, -1)
    slot_meters = meter._slot
    for owner in (slot_meters, meter):
        for name in [name for name in ("words", "reals", "_words", "_reals") if hasattr(owner, name)]:
            setattr(owner, name, Words(getattr(owner, name), life))
    return meter, board.slots[0], life


def mark(slot, stage, life) -> None:
    if next(life) == 0:
        raise Killed
    slot.hand.mark(0, stage)


def done(meter, slot, life):
    mark(slot, Stage.DONE, life)
    meter.done(0.1)


def settled(verdict, is_ours):
    def end(meter, slot, life):
        meter.settles(verdict, is_ours)
        mark(slot, Stage.SETTLED, life)
        meter.settled(0.1)

    return end


ENDS = {
    "done": done,
    "released": settled(Release(0.0), is_ours=True),
    "failed": settled(Fail(ValueError()), is_ours=True),
    "refused": settled(Release(0.0), is_ours=False),
}


def attempt(meter, slot, life, end) -> None:
    meter.turn("default", "app.ok")
    meter.begins(PAYLOAD, 1001.0)
    mark(slot, Stage.RUNNING, life)
    end(meter, slot, life)


def bury(board, stores: int) -> bool:
    """What the steward does of a dead worker, until it is killed after so many stores; whether it came to the end."""
    slot, life = board.slots[0], itertools.count(stores, -1)
    held, dead = slot.hand.held(), DeadWorker(board, slot, 9)
    for name in ("words", "reals"):
        setattr(dead._meters, name, Words(getattr(dead._meters, name), life))
    try:
        if held[0].stage == Stage.RUNNING:
            dead.intends(layout.RELEASED + layout.AS_LOST)
            mark(slot, Stage.SETTLED, life)
        dead.count(held)
    except Killed:
        return False
    return True


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("workers_stores", range(16))
@pytest.mark.parametrize("stewards_stores", range(1, 10))
def test_every_attempt_that_began_counts_once(board, end, workers_stores, stewards_stores):
    meter, slot, life = living(board, workers_stores)
    try:
        attempt(meter, slot, life, ENDS[end])
    except Killed:
        began = slot.hand.held()[0].stage != Stage.RESERVED
    else:
        began = True
    bury(board, stewards_stores)
    bury(board, stewards_stores + 1)
    assert bury(board, 100)

    jobs = read(board).jobs
    counts = next(iter(jobs.values())) if jobs else None
    assert (counts.ended if counts else 0) == began
    if counts and began:
        assert sum((counts.timeout, counts.crash, counts.memory, counts.lease, counts.cancelled)) <= 1
        assert counts.run.observations == 1
    assert sum(read(board).exits.values()) == 1
