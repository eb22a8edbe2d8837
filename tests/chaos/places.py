"""Limits: never more at a time or in a while than their numbers (L1), and no place is at rest while a job waits (L2).

Nor is a job parked for ever (L3): until the last one is done, others start or end.

A job holds its places from before its first line until it is settled, so it has them at least until its last one, until
its span ends or its worker dies. An overlap is never excused: before a lease ends, its worker is ended, so that nobody
else can have its places while it runs. A number that is set is in force for those that enter from then on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queuepool.payload.limits import name_of
from tests.chaos import limited, steps
from tests.chaos.ledger import Event
from tests.chaos.windows import Windows

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

#: nanoseconds by which a death may be seen late, if the harness did not cause it
_SEEN_LATE = 200_000_000
#: nanoseconds between a start that a rate counts and its job's first line, and for which a place may be at rest
_FIRST_LINE, _AT_REST = 250_000_000, 250_000_000
#: nanoseconds for which a call of the store may wait for its answer
_HELD_UP = 10_000_000_000
#: leases after which nothing that was lost holds a place any more
_QUIET = 1.5
#: nanoseconds until a new steward is at work
_NEW_STEWARD = 2_000_000_000
AT_REST = "place at rest beside a job that waits, if that was long"


@dataclass(slots=True)
class Start:
    """Nanoseconds. ``since``: what its worker did before, so that it had not entered; ``ended``: 0 = never."""

    job: str
    pid: int
    since: int
    began: int
    ended: int = 0


class Numbers:
    """What was set by hand, and when that may have been in force."""

    def __init__(self) -> None:
        #: by limit: the number, from when on, and until when at most
        self._set: dict[str, list[tuple[int, int, int | None]]] = {}
        #: by limit: when each command that sets it has begun, and when it was done, 0 = not yet
        self._commands: dict[str, list[tuple[int, int]]] = {}

    def read(self, event: Event) -> None:
        """``on``: 1 before it is set, 0 afterwards; ``n``: the number, -1 = as code says."""
        name, now = event["name"], event["t"]
        known = self._set.setdefault(name, [(limited.LIMITS[name][0], 0, None)])
        commands = self._commands.setdefault(name, [])
        if event["on"]:
            commands.append((now, 0))
            number = limited.LIMITS[name][0] if event["n"] < 0 else event["n"]
            known.append((number, now, None))
        else:
            known[:-1] = [(n, since, now if until is None else until) for n, since, until in known[:-1]]
            commands[:] = [(begun, ended or now) for begun, ended in commands]

    def known(self, name: str, since: int, until: int) -> int:
        """From when on, in this time, no command was setting it, which hands on what it frees before it is done."""
        for begun, ended in self._commands.get(name, ()):
            if begun <= until and (not ended or ended >= since):
                since = max(since, ended or until)
        return since

    def most(self, name: str, since: int, until: int) -> int:
        """The highest number that may have been in force at some moment of this time."""
        known = self._set.get(name) or [(limited.LIMITS[name][0], 0, None)]
        return max(n for n, begun, ended in known if begun <= until and (ended is None or ended >= since))


class Places:
    """Judges starts at the end, when all deaths are known."""

    EVENTS = (
        "run",
        "worker",
        "start",
        "finish",
        "die",
        "span",
        "ack",
        "release",
        "fail",
        "limit",
        "rest",
        "no_lease",
        "stored",
    )

    def __init__(self, findings: Findings, windows: Windows) -> None:
        self._findings = findings
        self._windows = windows
        self._numbers = Numbers()
        self._has_limits = False
        self._wide: set[int] = set()
        #: by worker, when it wrote something last
        self._last: dict[int, int] = {}
        self._at: dict[str, list[Start]] = defaultdict(list)
        self._open: dict[tuple[str, int], Start] = {}
        #: when a job with limits has started or ended last
        self._moved = 0
        #: by key and beginning, the end of what was at rest, and which job waited
        self._rest: dict[tuple[str, int], tuple[int, str]] = {}

    def read(self, event: Event) -> None:
        match event["f"]:
            case "run":
                self._has_limits = event.get("limits", False)
            case "limit":
                self._findings.count("numbers set by hand", 1 - event["on"])
                self._numbers.read(event)
            case "rest":
                self._rest[event["key"], event["since"]] = event["until"], event["first"]
            case "no_lease":
                self._findings.violated("L2 a place without a lease", f"{event['key']}: {event['holder']}")
            case "stored":
                self._stored(event)
            case "worker":
                (self._wide.add if event.get("lanes") else self._wide.discard)(event["pid"])
                self._last[event["pid"]] = event["t"]
            case what:
                self._read(what, event)

    def _read(self, what: str, event: Event) -> None:
        pid, now = event["pid"], event["t"]
        if what == "start":
            self._start(event)
        elif what in ("finish", "die", "span") and (one := self._open.pop((event["id"], pid), None)):
            one.ended = self._moved = now
        self._last[pid] = now

    def _start(self, event: Event) -> None:
        keys = self._keys(event)
        if not keys:
            return
        # What runs several at once may have entered before any of them has written something.
        since = 0 if event["pid"] in self._wide else self._last.get(event["pid"], 0)
        self._moved = event["t"]
        one = self._open[event["id"], event["pid"]] = Start(event["id"], event["pid"], since, event["t"])
        self._findings.count("starts with limits")
        for key in keys:
            self._at[key].append(one)

    def _stored(self, event: Event) -> None:
        quiet = (event["t"] - self._moved) / 1e9
        if event["where"] == "parked" and quiet > _QUIET * self._windows.retry_after:
            words = f"{event['id']}, though nothing with a limit has moved for {quiet:.1f} s"
            self._findings.violated("L3 parked for ever", words)

    def _keys(self, event: Event) -> list[str]:
        if self._has_limits and event["id"].startswith(f"{steps.STREAM}."):
            return [limited.OF_THE_QUEUE]
        keys: list[str] = event.get("at", [])
        return keys

    def rule(self) -> None:
        for key, starts in sorted(self._at.items()):
            starts.sort(key=lambda one: one.began)  # their lines come from several processes
            per = limited.LIMITS[name_of(key)][1]
            for one, words in self._in_a_while(key, starts, per) if per else self._at_a_time(key, starts):
                what = "a rate exceeded" if per else "above the limit"
                self._findings.violated(f"L1 {what}", f"{key}: {one.job} in pid {one.pid}, {words}")
        for (key, since), (until, job) in self._rest.items():
            self._rested(key, since, until, job)

    def _at_a_time(self, key: str, starts: list[Start]) -> Iterator[tuple[Start, str]]:
        running: list[Start] = []
        for one in starts:
            running = [other for other in running if self._runs(other, one.began)]
            most = self._numbers.most(name_of(key), one.since, one.began)
            if len(running) >= most:
                yield one, f"beside {', '.join(other.job for other in running)}, and {most} may"
            running.append(one)

    def _runs(self, one: Start, now: int) -> bool:
        if one.ended and one.ended <= now:
            return False
        windows = self._windows
        killed, died = windows.killed(one.pid, one.began), windows.died(one.pid, one.began)
        if killed and killed <= now:
            return False
        return not (died and died <= now + windows.slowed(_SEEN_LATE, one.began, died))

    def _in_a_while(self, key: str, starts: list[Start], per: float) -> Iterator[tuple[Start, str]]:
        began = [one.began for one in starts]
        for at, one in enumerate(starts):
            most = self._numbers.most(name_of(key), one.since, one.began)
            since = one.began - int(per * 1e9)
            since += int(self._windows.slowed(_FIRST_LINE, since, one.began))
            counted = [other for other in starts[bisect_left(began, since) : at] if not self._is_late(other, since)]
            if len(counted) >= most and not self._is_late(one, since):
                yield one, f"as number {len(counted) + 1} in {per:g} s, and {most} may"

    def _is_late(self, one: Start, since: int) -> bool:
        """Whether it may have been counted before that, and been held up until its first line."""
        if one.since > since:
            return False
        stopped = self._windows.stopped(one.pid, one.since)
        is_stopped = stopped is not None and stopped <= one.began
        return is_stopped or bool(self._windows.excuse(max(one.since, since - _HELD_UP), one.began))

    def _rested(self, key: str, since: int, until: int, job: str) -> None:
        """Only the death or the absence of stewards or of the store excuses it."""
        what = f"{key}: {(until - since) / 1e9:.3f} s, while {job} waited"
        if excuse := self._windows.excuse(since - _NEW_STEWARD, until):
            self._findings.excused(f"at rest: in {excuse}", what)
            return
        since = self._numbers.known(name_of(key), since, until)
        self._findings.measured(AT_REST, max(until - since, 0) / 1e9)
        if until - since > self._windows.slowed(_AT_REST, since, until):
            self._findings.violated("L2 a place at rest while a job waits", what)
