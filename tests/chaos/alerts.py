"""An alert is raised once until it is cleared: by each pool in its events, by all pools in their notices (I26).

A payload stays in quarantine to the end of the run, whichever steward looks. How long jobs run comes and goes, and a
new steward has seen no worker crash.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: for the pools' configuration
SECTION = f"""
[alerts]
quarantine = 1
crashes = 1
running = 1s
wait = 0
overdue = 0
failures = 0%
failed = 0
lost = 0
store = 0
store_full = 0
boot = 0
paused = 0
exec = {sys.executable} -S -m tests.chaos.notified
"""
#: the job that no worker can read, and its queue
POISON, QUEUE = "q", "high"
#: kinds that nothing clears within a run
_LASTING = {"quarantine"}
#: faults beside which the store answers every pool whose turn it is
_ASKED = {
    "calm", "kill_workers", "segfault_workers", "stop_workers", "restart_rolling", "broadcast_restarts", "wrong_type",
    "forget_scripts", "kill_steward", "kill_template", "kill_master", "kill_host", "storm_of_signals", "stop_master",
    "born_deaf", "foreign_board", "leave_now", "vanish", "scribble", "truncate",
}  # fmt: skip
#: faults that take the file with the alerts away
_FILELESS = {"vanish", "directory_full"}
#: nanoseconds: from a look to its notice's line, at most; by which another pool's line may be late; and within which a
#: pool that has sent one without the store tells the store so
_DELIVERED, _LATE, _TOLD = 15_000_000_000, 5_000_000_000, 30_000_000_000
_Alert = tuple[str, str]


class _Raised(NamedTuple):
    """When, and by which steward or pool."""

    at: int
    by: object


class Alerts:
    """Judges what is raised again; the ways of events and of notices are independent of each other."""

    EVENTS = ("alert", "notice", "kill", "nemesis")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        #: by master too
        self._events: dict[tuple[int, *_Alert], _Raised] = {}
        self._notices: dict[_Alert, _Raised] = {}
        self._twice: list[tuple[_Alert, _Raised, _Raised]] = []
        self._cleared: dict[_Alert, list[int]] = {}
        #: when a steward may have died between a look and its events
        self._deaths: list[int] = []
        self._fileless: list[int] = []

    def read(self, event: Event) -> None:
        match event["f"]:
            case "kill" if event["why"] in ("steward", "master", "host", "quit"):
                self._deaths.append(event["t"])
            case "nemesis" if event["name"] in _FILELESS:
                self._fileless.append(event["t"])
            case "alert":
                self._alert(event)
            case "notice":
                self._notice(event)

    def _alert(self, event: Event) -> None:
        self._findings.count(f"alerts {event['state']}")
        alert = event["kind"], event["subject"]
        if event["state"] == "cleared":
            self._events.pop((event["master"], *alert), None)
            self._cleared.setdefault(alert, []).append(event["t"])
            return
        now = _Raised(event["t"], event["pid"])
        before = self._events.get((event["master"], *alert))
        self._events[event["master"], *alert] = now
        if before and (before.by == now.by or not self._may_be_forgotten(event["kind"], before.at, now.at)):
            self._findings.violated("I26 raised twice", f"{' '.join(alert)} by the pool of {event['master']}")

    def _may_be_forgotten(self, kind: str, since: int, until: int) -> bool:
        """Whether another steward may not know what this one has raised, or has cleared."""
        moments = self._fileless if kind in _LASTING else self._deaths
        return any(since <= at <= until for at in moments)

    def _notice(self, event: Event) -> None:
        self._findings.count(f"notices: {event['state']}")
        alert = event["kind"], event["subject"]
        if event["state"] == "cleared":
            self._notices.pop(alert, None)
            return
        now = _Raised(event["t"], event["pool"])
        if before := self._notices.get(alert):
            self._twice.append((alert, before, now))
        self._notices[alert] = now

    def rule(self) -> None:
        for alert, before, now in self._twice:
            if self._was_away(now.at) or self._is_untold(before.at) or self._is_cleared(alert, before.at, now.at):
                self._findings.count("notices: raised again, excused")
            else:
                self._findings.violated("I26 noticed twice", f"{' '.join(alert)} by {before.by}, then by {now.by}")

    def _was_away(self, at: int) -> str:
        """Whether the store may not have answered who sends the notice that came at this moment."""
        return self._windows.excuse(at - _DELIVERED, at, _ASKED)

    def _is_untold(self, at: int) -> bool:
        """Whether a pool that had sent it without the store may have ended before it could tell the store so."""
        return bool(self._was_away(at)) and any(at <= death <= at + _TOLD for death in self._deaths)

    def _is_cleared(self, alert: _Alert, since: int, until: int) -> bool:
        """Whether a pool has cleared it meanwhile: its notice may be on its way, or have died with its steward."""
        if alert[0] in _LASTING:
            return False
        return any(since <= at <= until + _LATE for at in [*self._cleared.get(alert, ()), *self._deaths])
