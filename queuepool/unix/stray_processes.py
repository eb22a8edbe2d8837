"""Processes that jobs leave behind: children that moved to a session of their own and outlive their worker.

The master is their reaper (``PR_SET_CHILD_SUBREAPER``), so the kernel hands it every orphan below it. A worker marks
its environment with a cookie, and all that is started from there inherits it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container
from typing import NamedTuple

from queuepool.unix import fork, proc

COOKIE = "QUEUEPOOL_WORKER"
_log = logging.getLogger("queuepool")


class Origin(NamedTuple):
    """A worker whose descendants are looked for: its cookie, its pid and when it began (see ``proc.born``)."""

    cookie: str
    pid: int
    born: int


def mark(cookie: str) -> None:
    """In a worker: what it starts from now on is known to be its own."""
    os.environ[COOKIE] = cookie


def sweep(living: Container[int], cookies: Container[str]) -> None:
    """End this process's children that are of no living worker: neither one of the pids, nor marked with a cookie.

    What hides its origin is of a job, too; not so where we are PID 1, and orphans of anybody come to us.
    """
    for pid in proc.children():
        if pid not in living and _is_lost(proc.environment(pid).get(COOKIE, ""), cookies):
            fork.kill(pid)
            _log.warning("pid=%d killed: a job had left it behind", pid)


def _is_lost(cookie: str, living: Container[str]) -> bool:
    return cookie not in living and bool(cookie or os.getpid() != 1)


def hunt(origin: Origin) -> None:
    """End what a dead orphan left behind. It is not handed to a steward, so all processes are looked at."""
    for pid in proc.everybody():
        if pid != os.getpid() and is_left_behind(origin, pid):
            fork.kill_other(pid, lambda pid: is_left_behind(origin, pid))


def is_left_behind(origin: Origin, pid: int) -> bool:
    """Whether this process came from that dead worker: by its cookie, or because it still is in its group."""
    if proc.environment(pid).get(COOKIE) == origin.cookie:
        return True
    # A killed master may not have come to write the number down, and group 0 is everybody's outside of the container.
    # While a group has members, nobody else can have its dead leader's number.
    return origin.pid > 1 and proc.group(pid) == origin.pid and proc.born(origin.pid) in (0, origin.born)
