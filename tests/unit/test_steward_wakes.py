"""What ends a steward's wait decides which of its chores run at once."""

from __future__ import annotations

from itertools import chain, repeat

from queuepool.board.blame import Blame
from queuepool.board.board import Board
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Outage
from queuepool.steward.loop import Steward
from queuepool.stores.contract import Wake
from queuepool.unix.signals import WorkerSignals
from tests.support.each import each


class Counted:
    """A chore that is due once an hour."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, now: float) -> float:
        self.runs += 1
        return 3600.0


@each(
    ("change", "runs"),
    [(None, [1, 1, 1]), (Wake.DUE, [2, 1, 1]), (Wake.NEWS, [2, 2, 1])],
)
def test_a_push_wakes_the_urgent_ones_and_operators_those_that_look_for_news(change, runs):
    urgent, prompt, other = chores = [Counted() for _ in range(3)]
    board, signals, waits = Board.private(), WorkerSignals(), chain([change], repeat(None))
    outage = Outage(signals, Listeners(), announces=False, retries=False)
    rounds = iter([False, False, True])
    steward = Steward(
        "p", board.slots[0], board.header, [urgent], [prompt, other], lambda _: next(waits), signals, outage,
        Blame(board.header), prompt=[prompt],
    )  # fmt: skip
    steward.run(until=lambda: next(rounds))

    last = 1  # the urgent ones run once more at the end
    assert [runs[0] + last, *runs[1:]] == [chore.runs for chore in chores]


class Noted:
    """A chore that notes its runs."""

    def __init__(self, name: str, notes: list[str], pause: float) -> None:
        self.name, self.notes, self.pause = name, notes, pause

    def run(self, now: float) -> float:
        self.notes.append(self.name)
        return self.pause


def test_what_has_to_be_in_time_runs_between_the_others():
    notes = list[str]()
    pauses = {"short": 0.0, "late": 3600.0, "urgent": 3600.0, "a": 3600.0, "b": 3600.0}
    short, late, urgent, *others = (Noted(name, notes, pause) for name, pause in pauses.items())
    board, signals = Board.private(), WorkerSignals()
    outage = Outage(signals, Listeners(), announces=False, retries=False)
    rounds = iter([False, True])
    steward = Steward(
        "p", board.slots[0], board.header, [urgent], [*others, short, late], lambda _: None, signals, outage,
        Blame(board.header), between=[short, late],
    )  # fmt: skip
    steward.run(until=lambda: next(rounds))

    assert "urgent a short late b short short" == " ".join(notes[:7])


class Lasting(Noted):
    """Looks after what has to be in time by itself."""

    steward: Steward

    def run(self, now: float) -> float:
        self.steward.look_between()
        return super().run(now)


def test_an_urgent_chore_that_takes_long_can_have_it_run_meanwhile():
    notes = list[str]()
    lasting, short, late = (Lasting("lasting", notes, 3600.0), Noted("short", notes, 0.0), Noted("late", notes, 3600.0))
    board, signals = Board.private(), WorkerSignals()
    outage = Outage(signals, Listeners(), announces=False, retries=False)
    rounds = iter([False, True])
    lasting.steward = Steward(
        "p", board.slots[0], board.header, [lasting], [late, short], lambda _: None, signals, outage,
        Blame(board.header), between=[short],
    )  # fmt: skip
    lasting.steward.run(until=lambda: next(rounds))

    assert "short lasting late short" == " ".join(notes[:4])
