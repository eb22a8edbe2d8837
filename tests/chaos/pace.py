"""How slow the machine is for the run: ``python -m tests.chaos.pace`` measures it, ``Pace`` rules on what it says.

The rules that name seconds are for a machine that gives the run its processors. On one that is crowded by others they
say nothing about the pool, so what they find is no violation there, and no proof either.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from statistics import mean
from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.windows import OWN_PACE

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: seconds between two pieces of work, and of a processor for one; seconds over which the pace is the mean
_PAUSE, _WORK, _OVER = 0.5, 0.005, 10.0
#: as many times slower than alone: of two processors
TOO_SLOW = 2 * OWN_PACE
#: the rules that name seconds, or need a loop that comes to its turn before the alarm does
_TIMED = (
    "I8 started too late", "I10 killed too late", "I11 not recovered", "I12 size", "I17 held up by the other store",
    "I23 no soft timeout", "I23 soft timeout too late", "I24 no longer pushed", "I26 noticed twice",
    "I28 a neighbour was charged", "I28 interrupted by nobody", "I29 past its deadline",
    "I32 a free lane beside waiting jobs", "L1 a rate exceeded", "L2 a place at rest while a job waits",
    "L3 parked for ever", "I36 killed for a lease that could be renewed",
)  # fmt: skip


class Pace:
    """Turns what only a crowded machine can be blamed for into something unknown."""

    EVENTS = ("pace",)

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._last: deque[float] = deque(maxlen=int(_OVER / _PAUSE))
        self._slowest = 0.0

    def read(self, event: Event) -> None:
        self._last.append(event["times"])
        if len(self._last) == self._last.maxlen:
            self._slowest = max(self._slowest, mean(self._last))

    def rule(self) -> None:
        """After all others."""
        findings, is_slow = self._findings, self._slowest > TOO_SLOW
        findings.count("times slower than alone, at worst", round(self._slowest))
        for rule, cases in findings.late.items():
            if is_slow:
                self._doubt(rule, cases)
            else:
                findings.violations[rule] = findings.violations.get(rule, []) + cases
        for rule in _TIMED if is_slow else ():
            if cases := findings.violations.pop(rule, []):
                self._doubt(rule, cases)

    def _doubt(self, rule: str, cases: list[str]) -> None:
        self._findings.doubted[rule] = cases
        slow = f"for {_OVER:g} s the machine was {self._slowest:.0f} times too slow"
        self._findings.unknown.append(f"{rule}: {len(cases)}, but {slow}: {cases[0]}")


def measured() -> float:
    """How many times longer a little work takes than it takes alone."""
    began, ends = time.monotonic(), time.thread_time() + _WORK
    while time.thread_time() < ends:
        pass
    return (time.monotonic() - began) / _WORK


def main() -> None:
    """Write it down until the run ends this process."""
    from tests.chaos.own_ledger import LEDGER

    while True:
        LEDGER.write("pace", times=round(measured(), 1))
        time.sleep(_PAUSE)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    main()
