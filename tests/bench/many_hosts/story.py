"""What befell each host, read from the ledger: which fault explains a job that began again, and how soon all went on.

The chaos checker excuses by the time of a fault alone; here the fault has to be that of the host that ran the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.bench.rig import percentile
from tests.chaos.ledger import Event, Torn

_S = 1e9
#: nanoseconds after the end of a fault in which what was under way may still come to its end
_AFTER = 2 * _S


@dataclass(slots=True)
class _Begun:
    """The latest start of a job. Times in nanoseconds; 0: it has not finished."""

    host: str
    started: int
    finished: int = 0


@dataclass(slots=True)
class Story:
    """``twice``: jobs begun again, by what befell the host that had them; ``unexplained``: where nothing did."""

    hosts: Counter[str] = field(default_factory=Counter)
    twice: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    #: seconds until the first start, and until a job of another host was begun again
    spreads: dict[str, list[float]] = field(default_factory=dict)
    _host_of: dict[int, str] = field(default_factory=dict)
    _masters: dict[int, str] = field(default_factory=dict)
    _jobs: dict[str, _Begun] = field(default_factory=dict)
    #: by host: how, since when, and until when (0: it goes on)
    _faults: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    _waits: dict[str, tuple[str, int]] = field(default_factory=dict)

    def read(self, event: Event) -> None:
        match event["f"]:
            case "host":
                self._masters[event["master"]] = event["name"]
                if self._jobs:  # else it waits for the other hosts
                    self._waits[event["name"]] = ("a new host's start to its first job", event["t"])
            case "worker":
                self._host_of[event["pid"]] = self._masters[event["master"]]
            case "hit" if event["on"]:
                self._faults.setdefault(event["host"], []).append((event["how"], event["t"], 0))
            case "hit":
                how, since, _ = self._faults[event["host"]].pop()
                self._faults[event["host"]].append((how, since, event["t"]))
                self._waits[event["host"]] = ("the network's return to the host's next job", event["t"])
            case "start":
                self._start(event["id"], self._host_of[event["pid"]], event["t"])
            case "finish":
                self._jobs[event["id"]].finished = event["t"]

    def _start(self, job: str, host: str, now: int) -> None:
        self.hosts[host] += 1
        if host in self._waits:
            what, since = self._waits.pop(host)
            self._measured(what, now - since)
        if before := self._jobs.get(job):
            self._again(job, before, host, now)
        self._jobs[job] = _Begun(host, now)

    def _again(self, job: str, before: _Begun, host: str, now: int) -> None:
        how = self._fault(before.host, before.finished or before.started, now)
        what = "done twice" if before.finished else "begun again"
        if how:
            self.twice[f"{what}: its host was hit by {how}"] += 1
            if how == "kill_host":
                self._measured("a host's loss to its jobs elsewhere", now - self._faults[before.host][-1][1])
            return
        seconds = (now - (before.finished or before.started)) / _S
        self.unexplained.append(f"{job}: {what} on {host}, {seconds:.3f} s after {before.host}")

    def _fault(self, host: str, since: int, until: int) -> str:
        """Of this host in that time; '' = none."""
        faults = reversed(self._faults.get(host, []))
        return next((how for how, on, off in faults if on <= until and (not off or since <= off + _AFTER)), "")

    def _measured(self, what: str, nanoseconds: int) -> None:
        self.spreads.setdefault(what, []).append(nanoseconds / _S)

    def lines(self) -> Iterator[str]:
        """As the end of the run's table."""
        if self.hosts:
            yield f"starts on {len(self.hosts)} hosts: {min(self.hosts.values()):,} to {max(self.hosts.values()):,}"
        yield from (f"{what}: {count:,}" for what, count in sorted(self.twice.items()))
        for what, seconds in sorted(self.spreads.items()):
            p50, most = percentile(seconds, 0.5), max(seconds)
            yield f"{what}: p50 {p50:.2f} s, max {most:.2f} s, n={len(seconds)}"
        yield f"unexplained: {len(self.unexplained)}"
        yield from self.unexplained[:10]


def told(history: Iterable[Event | Torn]) -> Story:
    """The story of a whole ledger."""
    story = Story()
    for event in history:
        if not isinstance(event, Torn):
            story.read(event)
    return story
