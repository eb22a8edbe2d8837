"""Stray processes, which jobs leave behind: children that moved to a session of their own and outlive their worker.

The master is a subreaper (``PR_SET_CHILD_SUBREAPER``), so the kernel makes it the parent of every orphan below it. A
worker marks its environment with a cookie, and every process that is started from it inherits the cookie.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from queuepool.unix import fork, proc

COOKIE = "QUEUEPOOL_WORKER"
_log = logging.getLogger("queuepool")


class Origin(NamedTuple):
    """A worker whose descendants are searched for: its cookie, its pid and its ``proc.start_time``."""

    cookie: str
    pid: int
    start_time: int


def mark(cookie: str) -> None:
    """In a worker: mark every process that it starts from now on as its own."""
    os.environ[COOKIE] = cookie


def sweep(living: Container[int], cookies: Container[str]) -> None:
    """Kill this process's children that belong to no living worker: by none of these pids, by none of these cookies.

    A child without a cookie counts as a job's, except where we are PID 1 and every orphan becomes our child.
    """
    for pid in proc.children():
        if pid not in living and _is_lost(proc.environment(pid).get(COOKIE, ""), cookies):
            fork.kill(pid)
            _log.warning("pid=%d killed: a job had left it behind", pid)


def _is_lost(cookie: str, living: Container[str]) -> bool:
    return cookie not in living and bool(cookie or os.getpid() != 1)


@contextmanager
def ending_with_us() -> Iterator[None]:
    """Around the jobs of a worker without a master: kill what they have left behind, also in sessions of its own.

    What cannot be found: a fork that was never a program of its own, and whose parent has ended. Within a pool's job
    the pool does it.
    """
    own, before = os.getpid(), proc.children()
    cookie = f"alone.{own}.{os.urandom(8).hex()}"
    if COOKIE in os.environ:
        yield
        return
    mark(cookie)
    try:
        yield
    finally:
        if os.getpid() == own:  # not in a fork of a job's
            for pid in set(proc.children()) - {*before}:
                fork.kill(pid)
            for pid in proc.all_pids():
                if pid != own and _carries(pid, cookie):
                    fork.kill_other(pid, lambda pid: _carries(pid, cookie))
        del os.environ[COOKIE]


def _carries(pid: int, cookie: str) -> bool:
    return proc.environment(pid).get(COOKIE) == cookie


def kill_all_of(origin: Origin) -> None:
    """Kill processes left by a dead orphaned worker. They are not reparented to the steward, so scan every process."""
    for pid in proc.all_pids():
        if pid != os.getpid() and is_left_behind(origin, pid):
            fork.kill_other(pid, lambda pid: is_left_behind(origin, pid))


def is_left_behind(origin: Origin, pid: int) -> bool:
    """Whether this process came from that dead worker: it has its cookie, or still is in its group."""
    if proc.environment(pid).get(COOKIE) == origin.cookie:
        return True
    # A killed master may not have recorded the pid, and group 0 is that of every process outside of the container.
    # While a group has members, no other process can have its dead leader's pid.
    return origin.pid > 1 and proc.group(pid) == origin.pid and proc.start_time(origin.pid) in (0, origin.start_time)
