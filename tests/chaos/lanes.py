"""Jobs side by side in one worker: their deadlines (I29), and how many there are at once (I30)."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: of their ids
STREAM = "l"
#: seconds after a deadline and the grace; wide, for the machine may be busy. And those that half of the ends must keep
_LATEST, _USUAL, _FEW = 3.0, 0.25, 3
LATE = "end of a job that runs beside others, after its deadline"
_MOST = "most at once in a worker"
_STARTS = "starts beside others"


class Begun(NamedTuple):
    """An attempt; times in nanoseconds. ``until`` is its deadline, 0 for a job that says none."""

    job: str
    attempt: int
    mode: str
    pid: int
    started: int
    until: int


class Lanes:
    """Follows attempts from their first line to their last, or to the death of their worker.

    In workers that run one job at a time, those that say their deadlines.
    """

    EVENTS = ("run", "worker", "start", "finish", "die", "death")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._grace = 0.0
        #: by worker: how many it may run at once, and those that it runs
        self._most: dict[int, int] = {}
        self._open: dict[int, dict[str, Begun]] = {}
        #: with the moment of the end
        self._ended: list[tuple[Begun, int]] = []

    def read(self, event: Event) -> None:
        match event["f"]:
            case "run":
                self._grace = event.get("grace", 0.0)
            case "worker":
                self._most[event["pid"]], self._open[event["pid"]] = event.get("lanes") or 1, {}
            case "start":
                if event["pid"] in self._open and ("until" in event or self._most[event["pid"]] > 1):
                    self._start(begun(event))
            case "death":
                for one in self._open.pop(event["pid"], {}).values():
                    self._end(one, event["t"])
            case _:
                if one := self._open.get(event["pid"], {}).pop(event["id"], None):
                    self._end(one, event["t"])

    def _end(self, one: Begun, now: int) -> None:
        if one.until:
            self._ended.append((one, now))

    def _start(self, one: Begun) -> None:
        now = self._open[one.pid]
        if one.job in now:
            self._findings.violated("I30 too many at once", f"{one.job}: twice in pid {one.pid}")
        now[one.job] = one
        self._findings.count(_STARTS, self._most[one.pid] > 1)
        self._findings.count(_MOST, max(len(now) - self._findings.counts.get(_MOST, 0), 0))
        if len(now) > self._most[one.pid]:
            self._findings.violated("I30 too many at once", f"{one.job}: as number {len(now)} in pid {one.pid}")

    def rule(self) -> None:
        late = [seconds for one, ended in self._ended if (seconds := self._late(one, ended)) is not None]
        if len(late) >= _FEW and median(late) > _USUAL:
            words = f"half of {len(late)} after more than {median(late):.3f} s"
            self._findings.violated("I29 past its deadline", words)

    def _late(self, one: Begun, ended: int) -> float | None:
        """Seconds after the deadline and the grace, on a machine that nobody crowds.

        ``None`` = it has not reached it, or that was a fault's doing.
        """
        windows, seconds = self._windows, (ended - one.until) / 1e9
        if seconds <= 0.0 or windows.excuse(one.started, ended) or windows.stopped(one.pid, one.started):
            return None
        self._findings.measured(LATE, seconds)
        if seconds > self._grace + windows.slowed(_LATEST, one.until, ended):
            self._findings.violated("I29 past its deadline", f"{one.job} in pid {one.pid}: by {seconds:.3f} s")
        return max(seconds - self._grace, 0.0) / windows.slowed(1.0, one.until, ended)


def begun(event: Event) -> Begun:
    """Of a start."""
    return Begun(event["id"], event["a"], event.get("m", ""), event["pid"], event["t"], event.get("until", 0))
