"""Processes that jobs leave behind: children that moved to a session of their own and outlive their worker.

The master is their reaper (``PR_SET_CHILD_SUBREAPER``), so the kernel hands it every orphan below it. A worker marks
its environment with a cookie, by which a process that was started from it is told to be its own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container

from queuepool import fork, proc
from queuepool.board import Board, Slot
from queuepool.children import Children

COOKIE = "QUEUEPOOL_WORKER"
_log = logging.getLogger("queuepool")


def mark(board: Board, slot: Slot) -> None:
    """In a worker: what it starts from now on is known to be its own."""
    os.environ[COOKIE] = cookie_of(board, slot)


def cookie_of(board: Board, slot: Slot) -> str:
    """Names one life of one slot of one pool."""
    return f"{board.path.name}.{slot.index}.{slot.life}"


def sweep(board: Board, living: Children) -> None:
    """End the master's children that are of no ``living`` worker: neither the worker itself nor marked as its own.

    What hides its origin is of a job, too; not so where we are PID 1, and orphans of anybody come to us.
    """
    cookies = {cookie_of(board, child.slot) for child in living}
    for pid in proc.children():
        if pid not in living and _is_lost(proc.environment(pid).get(COOKIE, ""), cookies):
            fork.kill(pid)
            _log.warning("pid=%d killed: a job had left it behind", pid)


def _is_lost(cookie: str, living: Container[str]) -> bool:
    return cookie not in living and bool(cookie or os.getpid() != 1)


def hunt(board: Board, slot: Slot) -> None:
    """End what a dead orphan left behind: nobody's children are handed to a steward, so it looks at all processes."""
    cookie = cookie_of(board, slot)
    leader, born = slot.pid, slot.born

    def is_left_behind(pid: int) -> bool:
        # While its group has members, nobody else can have the dead leader's number.
        in_its_group = 0 < leader == proc.group(pid) and proc.born(leader) in (0, born)
        return proc.environment(pid).get(COOKIE) == cookie or in_its_group

    for pid in proc.everybody():
        if pid != os.getpid() and is_left_behind(pid):
            fork.kill_other(pid, is_left_behind)
