"""No worker is idle in some of its lanes while jobs wait in its queue (I32)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.lane_modes import BLOCKING
from tests.chaos.lanes import STREAM
from tests.chaos.ledger import Event
from tests.chaos.windows import WORKERS_ONLY, Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: nanoseconds; another worker may hold the jobs while a neighbour blocks its loop, until that one's deadline and grace
_LONGEST = 5_000_000_000
#: nemeses beside which a worker has no reason not to take jobs
_HARMLESS = WORKERS_ONLY - {"restart_rolling", "broadcast_restarts"}


class IdleLanes:
    """Of each worker: since when it could have taken a job and took none."""

    EVENTS = ("worker", "enq_ok", "start", "finish", "die", "death", "pace")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._lanes: dict[int, int] = {}
        self._open: dict[int, dict[str, str]] = {}
        self._since: dict[int, int] = {}
        self._waiting: set[str] = set()
        self._started: set[str] = set()
        self._idle: list[tuple[int, int, int]] = []

    def read(self, event: Event) -> None:
        now, pid = event["t"], event.get("pid", 0)
        match event["f"]:
            case "enq_ok" if event["p"] == STREAM:
                self._pushed(event, now)
            case "worker" if event.get("lanes"):
                self._lanes[pid], self._open[pid], self._since[pid] = event["lanes"], {}, now
            case "worker" | "death":  # a pid may come again
                for facts in (self._lanes, self._open, self._since):
                    facts.pop(pid, None)
            case "start":
                self._start(event, pid)
            case "finish" | "die" if pid in self._lanes:
                if not self._is_free(pid):
                    self._since[pid] = now
                self._open[pid].pop(event["id"], None)
        if self._waiting:
            self._look(now)

    def _pushed(self, event: Event, now: int) -> None:
        if not self._waiting:
            self._since = dict.fromkeys(self._since, now)
        new = {f"{STREAM}.{number}" for number in range(event["lo"], event["hi"] + 1)}
        self._waiting |= new - self._started

    def _start(self, event: Event, pid: int) -> None:
        """Any worker may take a job that waits."""
        if event["id"].startswith(f"{STREAM}."):
            self._started.add(event["id"])
            self._waiting.discard(event["id"])
        if pid in self._lanes:
            self._open[pid][event["id"]] = event.get("m", "")
            self._since[pid] = event["t"]

    def _is_free(self, pid: int) -> bool:
        """Whether it could begin a job."""
        inside = self._open[pid]
        return len(inside) < self._lanes[pid] and BLOCKING.isdisjoint(inside.values())

    def _look(self, now: int) -> None:
        for pid, since in self._since.items():
            if now - since > _LONGEST:
                self._since[pid] = now
                if self._is_free(pid):
                    self._idle.append((pid, since, now))

    def rule(self) -> None:
        for pid, since, until in self._idle:
            if not (self._windows.excuse(since, until, _HARMLESS) or self._windows.stopped(pid, since)):
                words = f"pid {pid} took no job for {(until - since) / 1e9:.1f} s"
                self._findings.violated("I32 a free lane beside waiting jobs", words)
