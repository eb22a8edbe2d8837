"""Whom nothing proves to have ended a worker is a suspect at first, and is charged only if it was the only one (I31).

What ends a worker that runs one job at a time is charged at once. In one that runs several, an end that proves nothing
makes suspects of all that ran; one that has been a suspect twice runs beside no other such job, so that each further
end is its own doing, for all that anybody can know. As many charges as the pool allows crashes fail a job: no fewer,
and no more.

Who is charged is not written down, and is counted here from what is: the attempts that ended with their workers, and
the kind of these workers. What a job does that leaves a proof, or that is stopped or hit by another signal, does not
say which of the two became of it; then its jobs are left alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.chaos.deaths import MAX_CRASHES
from tests.chaos.lane_modes import PROVEN
from tests.chaos.lanes import STREAM
from tests.chaos.ledger import Event
from tests.chaos.windows import WORKERS_ONLY, Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: the suspicions after which a job runs beside no other suspect, and is charged
_SUSPECT = 2
#: nemeses that take no store away, and with it what it knows of suspicions
_HARMLESS = WORKERS_ONLY | {
    "kill_steward", "kill_template", "kill_master", "kill_host", "stop_steward", "stop_master", "storm_of_signals",
    "leave_now", "stop_beside_orphans", "born_deaf", "foreign_board",
}  # fmt: skip
#: the signal that says nothing of who was the cause
_KILL = 9


@dataclass(slots=True)
class _Worker:
    """``is_doubtful``: it may have died of something else than a kill or its jobs."""

    is_wide: bool
    is_doubtful: bool = False


@dataclass(slots=True)
class _Start:
    """Times in nanoseconds; one that never ends has the end 0."""

    job: str
    attempt: int
    worker: _Worker
    began: int
    ended: int = 0


@dataclass(slots=True)
class _Job:
    mode: str = ""
    #: by attempt, the latest; one that is given back begins again, as often as it was
    starts: dict[int, _Start] = field(default_factory=dict)
    begun: Counter[int] = field(default_factory=Counter)
    returned: Counter[int] = field(default_factory=Counter)
    #: by attempt: the error with which it was settled, and whether that was for good
    ends: dict[int, tuple[str, bool]] = field(default_factory=dict)

    def is_known(self, attempt: int) -> bool:
        """Whether it is known in which worker it ended: one that was killed soon may not have written its start."""
        if attempt not in self.ends or self.begun[attempt] <= self.returned[attempt]:
            return False
        return not self.starts[attempt].worker.is_doubtful


class Suspects:
    """Judged at the end, when all is known: others tell of an attempt late."""

    EVENTS = ("worker", "kill", "death", "start", "finish", "die", "release", "fail", "requeue")

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._workers: dict[int, _Worker] = {}
        self._open: dict[int, dict[str, _Start]] = {}
        self._jobs: dict[str, _Job] = defaultdict(_Job)
        self._starts: list[_Start] = []

    def read(self, event: Event) -> None:
        pid = event["pid"]
        match event["f"]:
            case "worker":
                self._workers[pid], self._open[pid] = _Worker(bool(event.get("lanes"))), {}
            case "kill":
                if worker := self._workers.get(pid):
                    worker.is_doubtful |= event["sig"] != _KILL
            case "death":
                for one in self._open.pop(pid, {}).values():
                    one.ended = event["t"]
            case what if event["id"].startswith(f"{STREAM}."):
                self._read(what, event, pid)

    def _read(self, what: str, event: Event, pid: int) -> None:
        job, attempt = self._jobs[event["id"]], event["a"]
        match what:
            case "start":
                self._start(job, event, pid)
            case "requeue":
                job.returned[attempt] += 1
            case "release" | "fail":
                job.ends[attempt] = event.get("e", ""), what == "fail"
            case _:
                if one := self._open.get(pid, {}).pop(event["id"], None):
                    one.ended = event["t"]

    def _start(self, job: _Job, event: Event, pid: int) -> None:
        if pid not in self._workers:
            return
        job.mode = event.get("m", "")
        job.begun[event["a"]] += 1
        one = _Start(event["id"], event["a"], self._workers[pid], event["t"])
        job.starts[one.attempt] = self._open.setdefault(pid, {})[one.job] = one
        self._starts.append(one)

    def rule(self) -> None:
        self._rule_on_neighbours()
        for name, job in self._jobs.items():
            if job.mode not in PROVEN:
                self._rule_on_charges(name, job)

    def _rule_on_neighbours(self) -> None:
        """Of each worker, the suspect that runs; they are in the order of their starts."""
        running: dict[int, _Start] = {}
        for one in self._starts:
            if not (one.worker.is_wide and self._is_suspect(one)):
                continue
            self._findings.count("starts of suspects")
            before = running.get(id(one.worker))
            if before and before.job != one.job and (not before.ended or one.began < before.ended):
                words = f"{one.job} beside {before.job}, which began {(one.began - before.began) / 1e9:.3f} s before"
                self._findings.violated("I31 a suspect beside a suspect", words)
            running[id(one.worker)] = one

    def _is_suspect(self, one: _Start) -> bool:
        job = self._jobs[one.job]
        if job.mode in PROVEN:
            return False
        deaths = [start for start in self._deaths(job) if start.attempt < one.attempt and start.worker.is_wide]
        if len(deaths) < _SUSPECT:
            return False
        return not self._is_forgotten(deaths[0].began, one.began)

    def _is_forgotten(self, since: int, until: int) -> bool:
        """Whether the store may have lost what it knew then."""
        return bool(self._windows.excuse(since, until, _HARMLESS))

    def _deaths(self, job: _Job) -> Iterator[_Start]:
        """The attempts that ended with their workers, in order."""
        for attempt, (error, _) in sorted(job.ends.items()):
            if error == "WorkerDied" and job.is_known(attempt):
                yield job.starts[attempt]

    def _rule_on_charges(self, name: str, job: _Job) -> None:
        if not self._is_known(job):
            return
        charges = suspicions = 0
        for start in self._deaths(job):
            if start.worker.is_wide and suspicions < _SUSPECT:
                suspicions += 1
                self._findings.count("suspicions")
            else:
                charges += 1
            has_failed = job.ends[start.attempt][1]
            words = f"{name} ({job.mode}), attempt {start.attempt}: {suspicions} suspicions, {charges} charges"
            if has_failed and charges < MAX_CRASHES:
                self._findings.violated("I31 charged without a proof", words)
            elif not has_failed and charges >= MAX_CRASHES:
                self._findings.violated("I31 never charged", words)
            self._findings.count("failed as the only suspect", has_failed and suspicions == _SUSPECT)

    def _is_known(self, job: _Job) -> bool:
        """Whether it is known how, and in which kind of worker, each of its attempts ended up to the last settled one.

        Whoever was to tell may have died first.
        """
        attempts = range(1, max(job.ends, default=0) + 1)
        if not attempts or not all(map(job.is_known, attempts)):
            return False
        return not self._is_forgotten(job.starts[1].began, job.starts[attempts[-1]].ended)
