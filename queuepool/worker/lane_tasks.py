"""The code of jobs that run side by side on one loop: their tasks, steps and threads, each attributed to its job.

A task belongs to the job in whose code it was made, and a thread works in the context of its job. A coroutine writes on
the board, at each of its steps, which lane has the processor. If the process dies, or its loop hangs, in the middle of
a step, that word names the job to blame.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any

from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE
from queuepool.board.lanes import Lanes
from queuepool.jobs.current_job import Current
from queuepool.unix import at_fork
from queuepool.worker.deadlines import Deadline
from queuepool.worker.invoker import Leftovers, closes_a_generator

_owner: ContextVar[LaneTasks | None] = ContextVar("queuepool_lane", default=None)
_Task = asyncio.Task[Any]
#: whether this process is a copy of a worker, which a job has forked
_is_copy = False
#: how many threads Python's own loops have at most
_USUAL = 32


class JobTask(_Task):
    """A job's task. Only its own code can cancel it: ``all_tasks()`` gives a job those of its neighbours, too."""

    owner: LaneTasks | None = None

    def cancel(self, msg: Any = None) -> bool:
        """As usual in the job's own code; does nothing in another job's."""
        return _owner.get() in (None, self.owner) and super().cancel(msg)

    def __await__(self) -> Generator[Any, None, Any]:
        """As usual in the job's own code. Cancelling another job that awaits it does not cancel this one."""
        if self.done() or _owner.get() in (None, self.owner):
            return super().__await__()
        return asyncio.shield(self).__await__()

    def end(self) -> None:
        """Cancel it, and so what it awaits, as its own code would: the caller may be a timer of another job."""
        token = _owner.set(self.owner)
        try:
            super().cancel()
        finally:
            _owner.reset(token)


def can_end(task: JobTask | None) -> bool:
    """Whether a job that is cancelled ends by itself, as one has that ended just now. From any thread."""
    if task is None or task.done():
        return True
    owner = task.owner
    return bool(owner and owner.job and (owner.job.asks or not owner.is_plain))


class LaneTasks:
    """The tasks of one attempt in one lane. ``lanes``: the slot's, for the steps of its tasks."""

    def __init__(self, lanes: Lanes, lane: int) -> None:
        self._lanes = lanes
        #: ``None`` once the attempt is over: its lane may hold another job
        self.lane: int | None = lane
        self._shown = lane
        #: the context of the job, once it has begun
        self.deadline: Deadline | None = None
        self.job: Current | None = None
        #: whether it is a function in a thread, which cannot be cancelled
        self.is_plain = False
        #: when that function ended, in monotonic seconds: a loop that is busy learns it later
        self.thread_ended = math.inf
        #: whether it was told to end since its deadline had come
        self.is_late = False
        #: the tasks that the job has made and that still run
        self.left: set[_Task] = set()
        #: whether a thread has been asked for; and whether nothing of the job runs any more, but perhaps such a thread
        self.has_threads = self.is_over = False

    def begin(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], context: Context) -> JobTask:
        """The task of the job itself, in this context, which no other job has."""
        context.run(_owner.set, self)
        task = JobTask(Stepped(work, self._lanes, self._shown), loop=loop, context=context)
        task.owner = self
        return task

    def make(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> _Task:
        """A task that the job makes. ``options`` as in ``asyncio.Task``."""
        context = options.get("context")
        if context is not None:
            with suppress(RuntimeError):  # it is the one that this runs in
                context.run(_owner.set, self)
        task = JobTask(Stepped(work, self._lanes, self._shown), loop=loop, **options)
        task.owner = self
        self.left.add(task)
        task.add_done_callback(self.left.discard)
        return task

    async def clear(self, within: float) -> Leftovers:
        """Cancel what the job has left, and wait for its end, at most ``within`` seconds or until it is cancelled."""
        await asyncio.sleep(0)  # tasks about to end do so by themselves
        until = time.monotonic() + within
        cancelled: set[_Task] = set()
        while self.left:
            for task in self.left - cancelled:
                task.cancel()
                cancelled.add(task)
            if (now := time.monotonic()) >= until:
                break
            try:
                await asyncio.wait(self.left, timeout=until - now)
            except asyncio.CancelledError:
                break
        return Leftovers(len(cancelled), set(self.left))

    def timed(self, function: Callable[[], object]) -> object:
        """Call the job's plain function, in its thread, and note when it ends."""
        try:
            return function()
        finally:
            self.thread_ended = time.monotonic()

    def overran(self) -> bool:
        """Whether the job was still running at its deadline."""
        return self.is_late and self.deadline is not None and self.thread_ended > self.deadline.at

    def end(self) -> None:
        """The attempt is over: what still runs of it is in no lane."""
        self.lane, self._shown = None, self._lanes.hook
        for task in self.left:
            work = task.get_coro()
            if isinstance(work, Stepped):
                work.moves(self._shown)


def lane_of() -> int | None:
    """The lane of the job whose code runs here; ``None`` outside of one."""
    owner = _owner.get()
    return owner.lane if owner else None


def owner_here() -> LaneTasks | None:
    """The tasks of the job whose code runs here; ``None`` outside of one."""
    return _owner.get()


def make_task(lanes: Lanes, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> _Task:
    """The loop's task factory, for the slot with these ``lanes``. A task of no job is shown as common to all."""
    owner = _owner.get()
    # A generator is closed where garbage is collected, which may be in another job's code.
    if closes_a_generator(work) or not asyncio.iscoroutine(work):
        return asyncio.Task(work, loop=loop, **options)
    if owner is None:
        return asyncio.Task(Stepped(work, lanes, lanes.common), loop=loop, **options)
    return owner.make(loop, work, **options)


def end_copies() -> None:
    """By the worker: a copy of it that a job forks ends with that step, before it runs any other job's code."""
    at_fork.watch(_nothing, _note_copy)


class Stepped(Coroutine[Any, Any, Any]):
    """The same coroutine for its loop and for its tracebacks; ``lane`` is one of the slot's ``lanes``."""

    __slots__ = ("_coroutine", "_mark", "_reals", "_send", "_words")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], lanes: Lanes, lane: int) -> None:
        self._coroutine = coroutine
        self._send = coroutine.send
        self._words, self._reals = lanes.wholes, lanes.reals
        self._mark = lane + 1

    def moves(self, lane: int) -> None:
        """From its next step on it is in this lane."""
        self._mark = lane + 1

    def send(self, value: Any) -> Any:
        words = self._words
        # A step may be within another one: an eager task begins at once, and some libraries nest loops.
        if before := words[ON_CPU]:
            since = self._reals[ON_CPU_SINCE]
        self._reals[ON_CPU_SINCE] = monotonic()
        words[ON_CPU] = self._mark
        try:
            return self._send(value)
        except BaseException as error:
            _end(error)
            raise
        finally:
            if _is_copy:
                at_fork.leave()
            words[ON_CPU] = before
            if before:  # only now: the inner step must not look as old as the outer one
                self._reals[ON_CPU_SINCE] = since

    def throw(
        self, kind: Any, value: BaseException | object | None = None, traceback: TracebackType | None = None
    ) -> Any:
        # Not by ``send``'s own lines, which would be one frame more.
        words = self._words
        if before := words[ON_CPU]:
            since = self._reals[ON_CPU_SINCE]
        self._reals[ON_CPU_SINCE] = monotonic()
        words[ON_CPU] = self._mark
        try:
            # More than one argument is deprecated.
            return self._coroutine.throw(kind) if value is None else self._coroutine.throw(kind, value, traceback)
        except BaseException as error:
            _end(error)
            raise
        finally:
            if _is_copy:
                at_fork.leave()
            words[ON_CPU] = before
            if before:
                self._reals[ON_CPU_SINCE] = since

    def close(self) -> None:
        words = self._words
        if before := words[ON_CPU]:
            since = self._reals[ON_CPU_SINCE]
        self._reals[ON_CPU_SINCE] = monotonic()
        words[ON_CPU] = self._mark
        try:
            self._coroutine.close()
        finally:
            if _is_copy:
                at_fork.leave()
            words[ON_CPU] = before
            if before:
                self._reals[ON_CPU_SINCE] = since

    def __await__(self) -> Any:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        """What tasks show of their coroutine: its name, frame and code."""
        return getattr(self._coroutine, name)


def _end(error: BaseException) -> None:
    """The coroutine ends: take the wrapper's frame from its traceback, whose first is then the user's."""
    if _is_copy:
        at_fork.leave(None if isinstance(error, StopIteration) else error)
    if error.__traceback__:
        error.__traceback__ = error.__traceback__.tb_next


def _nothing() -> None:
    pass


def _note_copy() -> None:
    global _is_copy
    _is_copy = True


class ThreadCount:
    """How many threads are at work for each lane. ``show`` is called with a lane and how many more."""

    def __init__(self, show: Callable[[int, int], object]) -> None:
        self._show = show
        self._lock = Lock()

    def add(self, owner: LaneTasks | None, more: int) -> None:
        """In any thread. Does nothing outside of jobs, or once the job is over: its lane may hold another by then."""
        with self._lock:
            lane = None if owner is None or owner.is_over else owner.lane  # read once: the loop may end it
            if lane is not None:
                self._show(lane, more)

    def over(self, owner: LaneTasks) -> None:
        """On the loop: a thread that the job leaves behind no longer counts for a lane."""
        with self._lock:
            owner.is_over = True


class LaneThreads(ThreadPoolExecutor):
    """At most so many threads, which start as they are needed."""

    def __init__(self, most: int, count: ThreadCount) -> None:
        super().__init__(most, "queuepool job")
        self._count = count
        self._pid = os.getpid()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As in every executor; the call sees the caller's ``contextvars``."""
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
            at_fork.leave_if_copy(self._pid)  # first: in a copy, no thread would release the lock
            self._count.add(owner, -1)


def default_threads(concurrency: int, count: ThreadCount) -> LaneThreads:
    """The threads of ``asyncio.to_thread``. Plain jobs have others: a job with many threads must not delay them."""
    return LaneThreads(max(concurrency, _USUAL), count)
