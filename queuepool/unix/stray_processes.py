"""Processes that jobs leave behind: children that moved to a session of their own and outlive their worker.

The master is their reaper (``PR_SET_CHILD_SUBREAPER``), so the kernel hands it every orphan below it. A worker marks
its environment with a cookie, by which a process that was started from it is told to be its own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container

from queuepool.board.board import Board, Slot
from queuepool.master.children import Children
from queuepool.unix import fork, proc

COOKIE = "QUEUEPOOL_WORKER"
_log = logging.getLogger("queuepool")


def mark(board: Board, slot: Slot) -> None:
    """In a worker: what it starts from now on is known to be its own."""
    os.environ[COOKIE] = cookie_of(board, slot)


def cookie_of(board: Board, slot: Slot) -> str:
    """Names one life of one slot of one pool."""
    return _cookie(board, slot.index, slot.life)


def _cookie(board: Board, index: int, life: int) -> str:
    return f"{board.path.name}.{index}.{life}"


def sweep(board: Board, living: Children) -> None:
    """End the master's children that are of no ``living`` worker: neither the worker itself nor marked as its own.

    What hides its origin is of a job, too; not so where we are PID 1, and orphans of anybody come to us.
    """
    cookies = {_cookie(board, child.slot.index, child.life) for child in living}
    for pid in proc.children():
        if pid not in living and _is_lost(proc.environment(pid).get(COOKIE, ""), cookies):
            fork.kill(pid)
            _log.warning("pid=%d killed: a job had left it behind", pid)


def _is_lost(cookie: str, living: Container[str]) -> bool:
    return cookie not in living and bool(cookie or os.getpid() != 1)


def hunt(board: Board, slot: Slot) -> None:
    """End what a dead orphan left behind: nobody's children are handed to a steward, so it looks at all processes."""
    for pid in proc.everybody():
        if pid != os.getpid() and is_left_behind(board, slot, pid):
            fork.kill_other(pid, lambda pid: is_left_behind(board, slot, pid))


def is_left_behind(board: Board, slot: Slot, pid: int) -> bool:
    """Whether this process came from that dead one: by its cookie, or because it still is in its group."""
    if proc.environment(pid).get(COOKIE) == cookie_of(board, slot):
        return True
    # A killed master may not have come to write the number down, and group 0 is everybody's outside of the container.
    # While a group has members, nobody else can have its dead leader's number.
    return slot.pid > 1 and proc.group(pid) == slot.pid and proc.born(slot.pid) in (0, slot.born)
