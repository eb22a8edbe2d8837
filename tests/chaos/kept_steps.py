"""Jobs with steps and a cursor: each effect happened, and again at most as often as the job began again (S2)."""

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
        self._effects: dict[str, Counter[str]] = {}
        self._starts: Counter[str] = Counter()
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
            self._starts[job] += 1
        if job in self._effects:
            self._until[job] = event["t"]
            if event["f"] == "effect":
                self._effects[job][event["n"]] += 1
                self._findings.count("effects")
            elif event["f"] == "finish" and job not in self._elsewhere:
                self._finished.add(job)

    def rule(self) -> None:
        for job, effects in self._effects.items():
            again = sum(effects.values()) - len(effects)
            self._findings.count("effects again", again)
            if job in self._finished and (missing := EFFECTS - effects.keys()):
                self._findings.violated("S1 effect left out", f"{job}: {', '.join(sorted(missing))}")
            if again > self._starts[job] - 1:
                self._repeated(job, again)

    def _repeated(self, job: str, again: int) -> None:
        """Of a host or a store that was lost, more than the last effect may be lost."""
        what = f"{job}: {again} effects again in {self._starts[job]} starts"
        if excuse := self._windows.excuse(self._since[job], self._until[job]):
            self._findings.excused(f"effects again: in {excuse}", what)
        else:
            self._findings.violated("S2 effect again", what)
