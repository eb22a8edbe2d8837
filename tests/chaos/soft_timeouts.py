"""``SoftTimeout`` comes once, when its handler has run for that time (I23). In an async handler it is a cancellation.

That it comes in no other code shows itself: a job that it ended there is begun anew, and wrote no line about its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.async_soft_modes import ASYNC_PAST
from tests.chaos.ledger import Event
from tests.chaos.soft_modes import PAST, SOFT_TIMEOUT
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: seconds by which a handler's own timeout, which looks the same, may come earlier; and by which this one may be late
_SLACK, _LATEST = 0.003, 3.0
#: modes whose first attempts nothing else ends
_PAST = {PAST, *ASYNC_PAST}
LATE = "soft timeout after its time"


class SoftTimeouts:
    """Judges the moments, and that there are any; a process that was stopped gets it late."""

    EVENTS = ("start", "soft", "cancel", "end")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._late: list[tuple[str, int, int, float]] = []
        #: first attempts that wait for it: since when, and where
        self._waiting: dict[str, tuple[int, int]] = {}
        self._end = 0
        #: to an async handler a cancellation looks like its timeout
        self._cancelled: set[str] = set()

    def read(self, event: Event) -> None:
        match event["f"]:
            case "start":
                if event["a"] == 1 and event.get("m") in _PAST:
                    self._waiting[event["id"]] = event["t"], event["pid"]
            case "soft":
                self._waiting.pop(event["id"], None)
                if event["id"] not in self._cancelled:
                    self._came(event)
            case "cancel":
                self._cancelled.add(event["id"])
            case _:
                self._end = event["t"]

    def _came(self, event: Event) -> None:
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
        for job, (since, pid) in self._waiting.items():
            self._never_came(job, since, pid)

    def _never_came(self, job: str, since: int, pid: int) -> None:
        """What ended the attempt instead, or the run, must have come before its time."""
        windows = self._windows
        until = min(filter(None, (windows.killed(pid, since), windows.died(pid, since), self._end)), default=since)
        waited = (until - since) / 1e9
        if waited > SOFT_TIMEOUT + _LATEST and not (windows.stopped(pid, since) or windows.excuse(since, until)):
            self._findings.violated("I23 no soft timeout", f"{job}: within {waited:.3f} s")
