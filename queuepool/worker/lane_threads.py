"""The threads of jobs that run side by side: each works in the context of its job, and counts for its lane."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from threading import Lock
from typing import Any

from queuepool.unix import at_fork
from queuepool.worker.lane_tasks import LaneTasks, owner_here

#: how many threads Python's own loops have at most
_USUAL = 32


class ThreadCount:
    """How many threads are at work for each lane. ``show`` is called with a lane and how many more."""

    def __init__(self, show: Callable[[int, int], object]) -> None:
        self._show = show
        self._lock = Lock()

    def add(self, owner: LaneTasks | None, more: int) -> None:
        """In any thread; nothing once the job is over, whose lane may be another's by then, nor outside of jobs."""
        with self._lock:
            lane = None if owner is None or owner.is_over else owner.lane  # read once: the loop may end it
            if lane is not None:
                self._show(lane, more)

    def over(self, owner: LaneTasks) -> None:
        """On the loop: a thread that the job leaves behind is nobody's."""
        with self._lock:
            owner.is_over = True


class LaneThreads(ThreadPoolExecutor):
    """At most so many threads, which start as they are needed."""

    def __init__(self, most: int, count: ThreadCount) -> None:
        super().__init__(most, "queuepool job")
        self._count = count
        self._pid = os.getpid()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As of every executor; the call sees the caller's ``contextvars``."""
        if owner := owner_here():
            owner.has_threads = True
        refused: list[bool] = []
        try:
            return super().submit(self._call, owner, copy_context(), partial(fn, *args, **kwargs), refused)
        except RuntimeError:
            refused.append(True)  # no thread can be started, but it is in their queue all the same
            raise

    def _call(
        self, owner: LaneTasks | None, context: Context, call: Callable[[], object], refused: Sequence[bool]
    ) -> object:
        if refused:
            return None
        self._count.add(owner, 1)
        try:
            return context.run(call)
        except BaseException as error:
            at_fork.leave_if_copy(self._pid, error)
            raise
        finally:
            at_fork.leave_if_copy(self._pid)  # first: in a copy nobody gives the lock back
            self._count.add(owner, -1)


def default_threads(concurrency: int, count: ThreadCount) -> LaneThreads:
    """Those of ``asyncio.to_thread``. Plain jobs have others: a job with many threads must not hold them up."""
    return LaneThreads(max(concurrency, _USUAL), count)
