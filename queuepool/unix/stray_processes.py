"""Stray processes, which jobs leave behind: children that moved to another session and outlive their worker.

The master is a subreaper (``PR_SET_CHILD_SUBREAPER``), so the kernel makes it the parent of every orphan below it. A
worker marks itself, and every process that comes from it inherits the mark, in two ways. The first is the soft limit
``RLIMIT_LOCKS``, which no kernel since Linux 2.4.25 looks at: it is kept by fork, exec and set-user-id programs, and
every process may read it. The second is a variable of the environment, for systems without that limit: a program that
is started with another environment loses it, and that of a program that cannot be traced (``ssh-agent``) cannot be
read.

A process without our mark is never signalled: a container's first process adopts all orphans, and a process
that becomes a master by ``exec`` may have children from before.
"""

from __future__ import annotations

import logging
import os
import resource
import zlib
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from queuepool.unix import fork, proc

COOKIE = "QUEUEPOOL_WORKER"
#: every mark is above it, and no real limit is
_LEAST = 1 << 61
_log = logging.getLogger("queuepool")


class ProcessMark(NamedTuple):
    """The mark of one incarnation of one worker, unique on this host: its board, and its slot and incarnation there."""

    board: int
    life: int

    @classmethod
    def of(cls, board: str, index: int, incarnation: int) -> ProcessMark:
        """The mark of this incarnation of a slot of the board with this name."""
        return cls(zlib.crc32(board.encode()) >> 3, index << 20 | incarnation % (1 << 20))

    @classmethod
    def parsed(cls, number: int) -> ProcessMark | None:
        """The mark with this number; ``None`` if it is not a mark."""
        return cls((number - _LEAST) >> 32, number % (1 << 32)) if _LEAST <= number < 2 * _LEAST else None

    def __str__(self) -> str:
        return str(int(self))

    def __int__(self) -> int:
        return _LEAST + (self.board << 32) + self.life


def mark(mark: ProcessMark) -> None:
    """In a worker: mark it, and with it every process that it starts from now on."""
    os.environ[COOKIE] = str(mark)
    with suppress(OSError, ValueError):  # the hard limit is lower, or there is no such limit
        resource.setrlimit(proc.RLIMIT_LOCKS, (int(mark), resource.getrlimit(proc.RLIMIT_LOCKS)[1]))


def mark_of(pid: int) -> ProcessMark | None:
    """The mark of the worker from which this process comes; ``None``: it comes from none, or is gone."""
    if found := ProcessMark.parsed(proc.file_locks(pid)):
        return found
    told = proc.variable(pid, COOKIE)
    return ProcessMark.parsed(int(told)) if told.isdecimal() else None


def sweep(living: Container[int], board: str, marks: Container[ProcessMark], refused: Container[int] = ()) -> set[int]:
    """Kill those of our children that a dead worker of this board has left: ``marks`` are those of the living workers.

    Children with a ``living`` pid are spared. Returns the pids that cannot be killed, as they are another user's; those
    ``refused`` before are not tried again.
    """
    lost = [pid for pid in proc.children() if pid not in living and _is_lost(mark_of(pid), board, marks)]
    return {pid for pid in lost if pid in refused or not _is_killed(pid)}


def _is_lost(mark: ProcessMark | None, board: str, living: Container[ProcessMark]) -> bool:
    return mark is not None and mark not in living and mark.board == ProcessMark.of(board, 0, 0).board


def _is_killed(pid: int) -> bool:
    try:
        fork.kill(pid)
    except PermissionError:
        _log.warning("cannot kill stray process pid=%d, left by a job: it is another user's", pid)
        return False
    _log.warning("killed stray process pid=%d, left by a job", pid)
    return True


@contextmanager
def ending_with_us() -> Iterator[None]:
    """Around the jobs of a worker without a master: kill what they have left behind, in other sessions too.

    In a worker of a pool, the pool does it.
    """
    if COOKIE in os.environ:
        yield
        return
    own, alone = os.getpid(), ProcessMark.of(f"alone.{os.urandom(8).hex()}", 0, 0)
    mark(alone)
    try:
        yield
    finally:
        if os.getpid() == own:  # not in a fork of a job's
            kill_all_of(alone)
        del os.environ[COOKIE]


def kill_all_of(mark: ProcessMark) -> None:
    """Kill processes left by a dead orphaned worker. They are not reparented to the steward, so scan every process."""
    _kill_all(lambda found: found == mark)


def kill_all_on(board: str) -> int:
    """Kill all processes that come from the workers of the board with this name; returns how many there were."""
    return _kill_all(lambda found: found is not None and found.board == ProcessMark.of(board, 0, 0).board)


def _kill_all(is_meant: Callable[[ProcessMark | None], bool]) -> int:
    found = [pid for pid in proc.all_pids() if pid != os.getpid() and is_meant(mark_of(pid))]
    for pid in found:
        fork.kill_other(pid, lambda pid: is_meant(mark_of(pid)))
    return len(found)
