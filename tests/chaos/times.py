"""Delays: recovery, kills after a deadline, delayed jobs, the first job after an outage (I8, I10, I11)."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

_S = 1e9
#: seconds; wide, for the machine may be busy with other things: whatever is beyond them has been forgotten
_LATEST_KILL, _LATEST_RECOVERY, _LATEST_START = 3.0, 10.0, 10.0
#: seconds by which two clocks may differ that are read one after the other
_SLACK = 0.02
#: seconds from the moment in which the alarm is set to the job's first line, from which the ledger takes its deadline
_UNTIL_BEGUN = 0.1
#: seconds after the deadline in which at least half of the kills must come
_USUAL_KILL, _FEW = 0.25, 3
RECOVERY, KILL = "killed worker's job starts again", "death after the deadline"
DELAYED, BACK, WHOLE = "delayed job", "store back to first job", "pool whole again, once asked"


class Times:
    """Distances between events; what is delayed by a nemesis that harms more than workers is not judged."""

    EVENTS = ("start", "finish", "death", "kill", "back", "size")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._deadlines: dict[int, tuple[str, int, int, float]] = {}
        self._killed: list[tuple[str, int, int, int, float, int]] = []
        #: seconds of each kill after its deadline, on a machine that nobody crowds
        self._usual: list[float] = []
        self._spans: list[tuple[str, str, int, int]] = []
        self._back = 0

    def read(self, event: Event) -> None:
        match event["f"]:
            case "start":
                self._start(event)
            case "finish":
                self._deadlines.pop(event["pid"], None)
            case "death":
                if event["pid"] in self._deadlines:
                    job, started, deadline, grace = self._deadlines.pop(event["pid"])
                    self._killed.append((job, event["pid"], started, deadline, grace, event["t"]))
            case "kill" if event["why"] == "end" and event["pid"] in self._deadlines:
                self._findings.violated("I10 never killed", f"{self._deadlines[event['pid']][0]} in pid {event['pid']}")
            case "size":
                self._findings.measured(WHOLE, event.get("after", 0.0))
            case "back":
                self._back = event["t"]

    def _start(self, event: Event) -> None:
        if self._back:
            self._findings.measured(BACK, (event["t"] - self._back) / _S)
            self._back = 0
        self._deadlines.pop(event["pid"], None)
        if "d" in event:
            self._deadlines[event["pid"]] = (event["id"], event["t"], event["d"], event.get("grace", 0.0))
        if "due" in event and event["a"] == 1:
            self._spans.append((DELAYED, event["id"], event["due"], event["t"]))

    def recovered(self, job: str, killed: int, again: int) -> None:
        """Of ``h`` alone: ``t`` has a backlog, to whose end a job goes whose worker died."""
        if job.startswith("h."):
            self._spans.append((RECOVERY, job, killed, again))

    def rule(self) -> None:
        for what, job, since, until in self._spans:
            self._span(what, job, since, until)
        for job, pid, started, deadline, grace, died in self._killed:
            self._overdue(job, pid, started, deadline, grace, died)
        for pid, (job, *_) in self._deadlines.items():
            self._findings.violated("I10 never killed", f"{job} in pid {pid}")
        kills = self._usual
        if len(kills) >= _FEW and median(kills) > _USUAL_KILL:
            self._findings.violated(
                "I10 killed too late", f"half of {len(kills)} after more than {median(kills):.3f} s"
            )

    def _span(self, what: str, job: str, since: int, until: int) -> None:
        seconds = (until - since) / _S
        if seconds < -_SLACK:
            self._findings.violated("I8 started too early", f"{job}: by {-seconds:.3f} s")
        if self._windows.excuse(since, until):
            return
        self._findings.measured(what, seconds)
        latest = _LATEST_RECOVERY if what == RECOVERY else _LATEST_START
        if seconds > self._windows.slowed(latest, since, until):
            self._findings.violated(
                "I11 not recovered" if what == RECOVERY else "I8 started too late", f"{job}: {seconds:.3f} s"
            )

    def _overdue(self, job: str, pid: int, started: int, deadline: int, grace: float, died: int) -> None:
        windows, seconds = self._windows, (died - deadline) / _S
        if (windows.killed(pid, started) or died + 1) <= died or (windows.stopped(pid, started) or died + 1) <= died:
            return  # we were first
        if windows.excuse(started, died):
            return
        # One that had robbed the alarm lives on for the grace, unless something gives the alarm its chance.
        self._findings.measured(KILL, max(seconds - grace, 0.0))
        self._usual.append(max(seconds - grace, 0.0) / windows.slowed(1.0, deadline, died))
        if seconds < -windows.slowed(_UNTIL_BEGUN, started, died):
            self._findings.violated("I10 killed before its deadline", f"{job}: by {-seconds:.3f} s")
        elif seconds > grace + windows.slowed(_LATEST_KILL, deadline, died):
            self._findings.violated("I10 killed too late", f"{job}: {seconds:.3f} s")
