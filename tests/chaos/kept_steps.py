"""Jobs with steps and a cursor: each effect happened, and of an attempt at most one had happened before (S2)."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from queuepool import current, cursor, step
from tests.chaos.ledger import Event, Ledger
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

STEPS, ROWS = 4, 12
#: all effects that a job has
EFFECTS = {*(f"step {number}" for number in range(STEPS)), *(f"row {number}" for number in range(ROWS))}
#: seconds before and after an effect: long enough to be killed in
_TAKES = 0.01


def stepped(attempt: int, ledger: Ledger) -> None:
    """Each of its effects is in the ledger; whatever ends the attempt, its job lets go of it."""
    try:
        for number in range(STEPS):
            step("step", _effect, ledger, f"step {number}", key=number)
        for row in cursor("rows", lambda done: range(done or 0, ROWS)):
            _effect(ledger, f"row {row}")
    except BaseException:
        ledger.attempt("die", current().id, attempt)
        raise


def _effect(ledger: Ledger, name: str) -> None:
    time.sleep(_TAKES)
    ledger.write("effect", id=current().id, a=current().attempts, n=name)
    time.sleep(_TAKES)


class KeptEffects:
    """Judges the effects of each job at the end: deaths are known then."""

    EVENTS = ("start", "finish", "effect")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        #: by job, how often each attempt had each effect
        self._effects: dict[str, Counter[tuple[int, str]]] = {}
        #: by job, how often each attempt began: one that has left its worker begins again as the same
        self._starts: dict[str, Counter[int]] = {}
        self._since: dict[str, int] = {}
        self._until: dict[str, int] = {}
        self._finished: set[str] = set()
        #: whose later attempt was one of Laravel's worker, which has no steps
        self._elsewhere: set[str] = set()

    def read(self, event: Event) -> None:
        job = event["id"]
        if event["f"] == "start":
            if "m" not in event and job in self._effects:
                self._elsewhere.add(job)
            if event.get("m") != "stepped":
                return
            self._effects.setdefault(job, Counter())
            self._since.setdefault(job, event["t"])
            self._starts.setdefault(job, Counter())[event["a"]] += 1
        if job in self._effects:
            self._until[job] = event["t"]
            if event["f"] == "effect":
                self._effects[job][event["a"], event["n"]] += 1
                self._findings.count("effects")
            elif event["f"] == "finish" and job not in self._elsewhere:
                self._finished.add(job)

    def rule(self) -> None:
        for job, effects in self._effects.items():
            names = {name for _, name in effects}
            self._findings.count("effects again", sum(effects.values()) - len(names))
            if job in self._finished and (missing := EFFECTS - names):
                self._findings.violated("S1 effect left out", f"{job}: {', '.join(sorted(missing))}")
            for attempt, again in _again(effects).items():
                if again > self._begun_again(job, attempt):
                    self._repeated(job, f"{again} effects again in attempt {attempt}")

    def _begun_again(self, job: str, attempt: int) -> int:
        """How many starts of this attempt had one before them, whose last effect may be lost."""
        starts = self._starts[job]
        return starts[attempt] - (attempt == min(starts))

    def _repeated(self, job: str, what: str) -> None:
        """Of a host or a store that was lost, more than the last effect may be lost."""
        if excuse := self._windows.excuse(self._since[job], self._until[job]):
            self._findings.excused(f"effects again: in {excuse}", f"{job}: {what}")
        else:
            self._findings.violated("S2 effect again", f"{job}: {what}")


def _again(effects: Counter[tuple[int, str]]) -> Counter[int]:
    """By attempt, how many of its effects this one, or one before it, had already had."""
    first = {name: attempt for attempt, name in sorted(effects, reverse=True)}
    again = Counter[int]()
    for (attempt, name), times in effects.items():
        again[attempt] += times - (first[name] == attempt)
    return again
