"""Nobody is killed for the end of a lease while the store and the stewards are there (I36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.windows import WORKERS_ONLY, Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: faults that keep nobody from renewing leases: the steward that follows a killed one renews them at once
_RENEWABLE = WORKERS_ONLY - {"wrong_type", "lock_rows", "deadlock", "hold_a_snapshot"} | {
    "kill_steward",
    "kill_template",
}
#: seconds before the first line of a job in which its lease began
_HELD = 3.0


class LeaseKills:
    """A fault that keeps leases from being renewed excuses kills until twice as long as a lease has passed.

    But for those of leases that began after it.
    """

    EVENTS = ("worker", "start", "lease_kill")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._kills: list[tuple[int, int, int]] = []
        #: when each worker has begun a job last, unless it runs several at once
        self._began: dict[int, int] = {}
        self._wide: set[int] = set()

    def read(self, event: Event) -> None:
        pid = event["pid"]
        if event["f"] == "worker" and event.get("lanes"):
            self._wide.add(pid)
        elif event["f"] == "start":
            self._began[pid] = 0 if pid in self._wide else event["t"]
        elif event["f"] == "lease_kill":
            self._kills.append((event["t"], pid, self._began.get(pid, 0)))

    def rule(self) -> None:
        self._findings.count("killed for a lease", len(self._kills))
        for moment, pid, began in self._kills:
            since = max(moment - int(2e9 * self._windows.retry_after), began - int(_HELD * 1e9))
            if not self._windows.excuse(since, moment, _RENEWABLE):
                self._findings.violated("I36 killed for a lease that could be renewed", f"pid {pid}")
