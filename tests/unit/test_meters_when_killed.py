"""An attempt counts exactly once, whichever of its writes is the last one of a process that is killed."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import pytest

from queuepool.board import meters as layout
from queuepool.board.board import Board, Role, Slot
from queuepool.board.counts import counts_of
from queuepool.board.held_jobs import Stage
from queuepool.board.lane_writer import LaneJobs, LaneWriter
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.board.states import Killed as KilledBy
from queuepool.payload.envelope import Envelope, decode, encode
from queuepool.payload.lease import Lease
from queuepool.settlement.verdict import Fail, Release
from queuepool.steward.death import Death
from queuepool.worker.meter import Meter
from tests.support.attackapp import SCRIBBLES

_, RAW = encode("app.ok", {}, Envelope(created_at=1000))
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


def new_board(folder: Path) -> Board:
    folder.mkdir()
    board = Board.create(folder / "board.1-1", 2)
    board.meters = MeterMemory.new(2, 0)
    board.slots[0].begin(Role.WORKER, 1, 1)
    board.slots[0].hold([Lease("default", RAW, 1)])
    return board


def living(board, stores: int) -> tuple[Meter, Slot, itertools.count]:
    """A worker that is killed after so many stores, in the meters or of a stage on the board."""
    meter, life = Meter(SlotMeters(board.meters, board.slots[0])), itertools.count(stores, -1)
    slot_meters = meter._slot
    for owner in (slot_meters, meter):
        for name in [name for name in ("words", "reals", "_words", "_reals") if hasattr(owner, name)]:
            setattr(owner, name, Words(getattr(owner, name), life))
    return meter, board.slots[0], life


def mark(slot, stage, life, number=0) -> None:
    if next(life) == 0:
        raise Killed
    slot.mark(number, stage)


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
    slot.status, slot.dead = signal.SIGKILL, 1
    held, death = slot.hand.held(), Death(board, slot, slot.incarnation, 1.0)
    for name in ("words", "reals"):
        setattr(death._meters, name, Words(getattr(death._meters, name), life))
    try:
        if held[0].stage == Stage.RUNNING:
            death.ends(held[0], layout.RELEASED + layout.AS_LOST)
            mark(slot, Stage.SETTLED, life)
        death.count(held)
    except Killed:
        return False
    return True


@pytest.mark.by_turns("end")
@pytest.mark.parametrize("end", ENDS)
def test_every_attempt_that_began_counts_once(tmp_path, end):
    """Names the stores that the worker and the steward still made where it does not."""
    wrong = {}
    for stores in itertools.product(range(16), range(1, 10)):
        board = new_board(tmp_path / "{}-{}".format(*stores))
        began = has_begun(board, ENDS[end], stores[0])
        burials = [bury(board, most) for most in (stores[1], stores[1] + 1, 100)]
        wrong[stores] = miscounted(board, began) if burials[-1] else ["is not buried"]
        board.memory.close()

    assert {} == {stores: facts for stores, facts in wrong.items() if facts}


def has_begun(board, end, stores: int) -> bool:
    """Whether the attempt of a worker that is killed after so many stores began."""
    meter, slot, life = living(board, stores)
    try:
        attempt(meter, slot, life, end)
    except Killed:
        return slot.hand.held()[0].stage != Stage.RESERVED
    return True


def miscounted(board, began: bool) -> list[str]:
    """What the meters say of the attempt that is not so."""
    found = counts_of(board)
    counts = next(iter(found.jobs.values())) if found.jobs else None
    ended = counts.ended if counts else 0
    wrong = [] if ended == began else [f"{ended} ended, began: {began}"]
    if counts and began:
        reasons = (counts.timeout, counts.crash, counts.memory, counts.lease, counts.cancelled)
        wrong += [f"{sum(reasons)} reasons"] if sum(reasons) > 1 else []
        wrong += [f"{counts.run.observations} runs"] if counts.run.observations != 1 else []
        shown, slot = (counts.failed, counts.released), board.slots[0]
        wrong += [f"the board shows {slot.failed} and {slot.released}"] if shown != (slot.failed, slot.released) else []
    exits = sum(found.exits.values())
    return wrong + ([f"{exits} exits"] if exits != 1 else [])


@pytest.mark.parametrize("killed", [KilledBy.OVERWRITTEN, KilledBy.NOT])
def test_an_attempt_counts_once_whatever_a_job_writes_over_the_slot_of_its_worker(tmp_path, killed):
    """Nor is its worker taken for one that has left: its end counts, too."""
    found = {}
    for how in SCRIBBLES:
        board = new_board(tmp_path / how)
        slot, (meter, _, life) = board.slots[0], living(board, 100)
        meter.turn("default", "app.ok")
        meter.begins(PAYLOAD, 1001.0)
        mark(slot, Stage.RUNNING, life)
        facts, first = slot.facts, slot.base
        board.memory[first : first + Slot.size] = SCRIBBLES[how](Slot.size)
        slot.facts = facts._replace(dead=1, status=signal.SIGKILL, killed=killed)  # which the master writes anew
        found[how] = "is not buried" if slot.holds_nothing else buried(board)
        board.memory.close()

    assert dict.fromkeys(SCRIBBLES, (1, 1)) == found


def buried(board: Board) -> tuple[int, int]:
    """How many attempts and exits are counted once the steward has looked at the dead worker."""
    slot = board.slots[0]
    death = Death(board, slot, slot.incarnation, 1.0)
    death.count(death.held or [])
    counts = counts_of(board)
    return sum(job.ended for job in counts.jobs.values()), sum(counts.exits.values())


# Of a worker that runs jobs side by side: it counts each attempt once that is over, and the lane says that it has.


def lanes_board(folder: Path) -> Board:
    folder.mkdir()
    board = Board.create(folder / "board.1-1", 2, lanes=2).mapped()
    board.meters = MeterMemory.new(2, 0)
    slot = board.slots[0]
    slot.begin(Role.WORKER, 1, 1)
    writer = LaneWriter(slot.lanes)
    for lane in range(2):
        writer.take(lane, Lease("default", RAW, 1), 0.0)
        writer.begins(lane, LaneJobs("{}", "app.ok"), job_id=PAYLOAD.id, attempt=1, since=1001.0, deadline=0.0)
    return board


def works(board: Board, stores: int, *, puts_off: bool) -> None:
    """Both attempts fail, until the worker is killed after so many stores. ``puts_off``: the first after the second."""
    meter, slot, life = living(board, stores)
    writer = LaneWriter(slot.lanes)
    try:
        if puts_off:
            meter.turn("default", "app.ok")
            meter.counts(writer.key(0), PAYLOAD, 1001.0)
            meter.puts_off()
        for lane in (1, 0) if puts_off else (0, 1):
            meter.turn("default", "app.ok")
            meter.counts(writer.key(lane), PAYLOAD, 1001.0, again=puts_off and lane == 0)
            meter.settles(Fail(ValueError()), is_ours=True)
            meter.settled(0.1)
            mark(slot, Stage.SETTLED, life, lane)
    except Killed:
        pass


def bury_lanes(board: Board, stores: int) -> bool:
    slot, life = board.slots[0], itertools.count(stores, -1)
    slot.status, slot.dead = signal.SIGKILL, 1
    held, death = slot.held(), Death(board, slot, slot.incarnation, 1.0)
    for name in ("words", "reals"):
        setattr(death._meters, name, Words(getattr(death._meters, name), life))
    try:
        for one in held:
            death.ends(one, layout.FAILED + layout.AS_LOST)
            mark(slot, Stage.SETTLED, life, one.number)
        death.count(held)
    except Killed:
        return False
    return True


@pytest.mark.parametrize("puts_off", [False, pytest.param(True, marks=pytest.mark.thorough("as one after the other"))])
def test_every_attempt_beside_another_counts_once(tmp_path, puts_off):
    wrong = {}
    for stores in itertools.product(range(36 if puts_off else 30), range(1, 14)):
        board = lanes_board(tmp_path / "{}-{}".format(*stores))
        works(board, stores[0], puts_off=puts_off)
        burials = [bury_lanes(board, most) for most in (stores[1], stores[1] + 1, 100)]
        counts = next(iter(counts_of(board).jobs.values()))
        wrong[stores] = (burials[-1], counts.ended, counts.failed) != (True, 2, 2) and (burials, counts)

    assert {} == {stores: facts for stores, facts in wrong.items() if facts}
