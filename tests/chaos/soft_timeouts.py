"""``SoftTimeout`` comes once, when its handler has run for that time (I23).

That it comes in no other code shows itself: a job that it ended there is begun anew, and wrote no line about its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.soft_modes import SOFT_TIMEOUT
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: seconds: the first line of a handler is written a little after its start
_SLACK, _LATEST = 0.02, 3.0
LATE = "soft timeout after its time"


class SoftTimeouts:
    """Judges the moments; a process that was stopped gets it late."""

    EVENTS = ("soft",)

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._late: list[tuple[str, int, int, float]] = []

    def read(self, event: Event) -> None:
        self._findings.count("soft timeouts")
        late = event["after"] - SOFT_TIMEOUT
        if late < -_SLACK:
            self._findings.violated("I23 soft timeout too early", f"{event['id']}: after {event['after']:.3f} s")
        self._late.append((event["id"], event["since"], event["t"], late))

    def rule(self) -> None:
        for job, since, until, late in self._late:
            if self._windows.excuse(since, until):
                continue
            self._findings.measured(LATE, max(late, 0.0))
            if late > _LATEST:
                self._findings.violated("I23 soft timeout too late", f"{job}: by {late:.3f} s")
