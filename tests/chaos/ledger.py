"""The append-only history of one run: one line of JSON per event, one write per line.

``t`` is CLOCK_MONOTONIC in nanoseconds, ``f`` what happened. An event is written before what must not be seen without
it (``enq_inv`` before the push, ``start`` before the work, ``kill`` before the kill) and after what it confirms.
``id`` is PRODUCER.NUMBER, ``a`` the attempt:

enq_inv enq_ok enq_unknown p lo hi      a push of the numbers lo to hi: about to be sent, acknowledged, unanswered
start finish die id a pid               by the job: first, last; its effect is over, its worker dies or drops it
ack release fail requeue stale id a     by a listener: what the pool reports; stale: refused, the lease was lost
fail e   release e                      the error's class; none: its handler asked for the release
soft id a since after                   by the job: it got SoftTimeout, after so many seconds; since: before its start
span killed_span id a pid               what a tracer learns: by a hook around the attempt; by a listener in the steward
span e                                  the error's class, if the attempt failed
ghost id a pid                          by what an async job left behind: it went on after its job
undeleted id a pid                      by Laravel's own worker: the store refused to delete a done job
cancel id a                             by the harness, before it orders the end of this attempt
kill pid why   death pid                by the harness, before the kill; by the watcher, once the kernel reports it
nemesis name on   back                  a fault begins (1), ends (0); the store answers again
other on                                the other store goes away (1), answers again (0)
outcome id how                          in the store: what Laravel will learn of the job's end, succeeded or lost
locked unlocked id                      its lock is held though it is over; is not held though it is to be done
alert state kind subject pid master      an event of a steward: raised or cleared
notice state kind subject pool           what the operator gets, of all pools
kept id a pid lost                      what is kept of an attempt; lost: it says that its lease was lost
limit name n on                         its number is about to be set by hand (1; -1 = as code says); was set (0)
rest key since until free first         a place was free at each look, while the same jobs waited; one of these
no_lease key holder                     seen at one moment: a place whose lease is over
tick due   behind seconds               a time for which a schedule's job was pushed; how old the last one is
worker pid master lanes   by a worker that begins; its master's pid; how many jobs it runs at once, if several
host name master clock   hit host how on    of many hosts: its pool; a fault of this one begins (1), ends (0)
meters board jobs   counted master jobs      what the meters say, while it runs; once all is counted
pace times                              how many times longer a little work takes than alone
size sample idle copies stored          what was seen from outside: whole pools, resources, commands, the store
orphan leftover secret pool_died bad_stop    what must not be seen
run seed workers retry_after ahead grace lanes wide records limits   end left      the first line and the last,
without which: unknown
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.lines import parted

Event = dict[str, Any]
_FAR = 500


class Ledger:
    """Appends events; may be shared by processes, each of which opens it for itself."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self.open()

    def open(self) -> None:
        """Open it again, in case a job has closed every descriptor."""
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # Far from the descriptors of other files: a write to one that was closed meanwhile must not hit this file.
        self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FAR)
        os.close(fd)

    def write(self, what: str, **facts: object) -> None:
        self.raw(json.dumps({"t": time.monotonic_ns(), "f": what, **facts}, separators=(",", ":")))

    def attempt(self, what: str, job_id: str, attempt: int) -> None:
        """``write`` without its price, for what each job writes."""
        self.raw(f'{{"t":{time.monotonic_ns()},"f":"{what}","id":"{job_id}","a":{attempt},"pid":{os.getpid()}}}')

    def raw(self, line: str) -> None:
        os.write(self._fd, f"{line}\n".encode())


class Torn(Exception):
    """What is no event: its writer was killed in the middle of its line, or the file has been cut."""


def read(path: str | Path) -> Iterator[Event | Torn]:
    """Every event in the order in which they were written; what cannot be read comes as ``Torn``."""
    with Path(path).open("rb") as lines:
        for line in lines:
            yield from _events(line)


def _events(line: bytes) -> Iterator[Event | Torn]:
    try:
        torn, event = parted(line) if line.endswith(b"\n") else (line, None)
    except ValueError:
        torn, event = line, None
    if torn:
        yield Torn(torn[:120])
    if event is not None:
        yield event if "t" in event and "f" in event else Torn(line[:120])
