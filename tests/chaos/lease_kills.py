"""Nobody is killed for the end of a lease while the store and the stewards are there (I36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: faults that keep nobody from renewing leases: the steward that follows a killed one renews them at once
_RENEWABLE = {"calm", "kill_workers", "segfault_workers", "broadcast_restarts", "restart_rolling", "kill_steward"}


class LeaseKills:
    """A fault that keeps leases from being renewed excuses kills until twice as long as a lease has passed."""

    EVENTS = ("lease_kill",)

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._kills: list[Event] = []

    def read(self, event: Event) -> None:
        self._kills.append(event)

    def rule(self) -> None:
        self._findings.count("killed for a lease", len(self._kills))
        for kill in self._kills:
            since = kill["t"] - int(2e9 * self._windows.retry_after)
            if not self._windows.excuse(since, kill["t"], _RENEWABLE):
                self._findings.violated("I36 killed for a lease that could be renewed", f"pid {kill['pid']}")
