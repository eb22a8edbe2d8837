"""The tasks of jobs that run side by side on one loop: each belongs to the job in whose code it was made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Generator
from contextlib import suppress
from contextvars import Context, ContextVar
from typing import Any

from queuepool.board.lanes import Lanes
from queuepool.jobs.current_job import Current
from queuepool.worker.deadlines import Deadline
from queuepool.worker.invoker import Leftovers, closes_a_generator
from queuepool.worker.stepped import Stepped

_owner: ContextVar[LaneTasks | None] = ContextVar("queuepool_lane", default=None)
_Task = asyncio.Task[Any]


class JobTask(_Task):
    """A job's task. Only its own code can cancel it: ``all_tasks()`` gives a job those of its neighbours, too."""

    owner: LaneTasks | None = None

    def cancel(self, msg: Any = None) -> bool:
        """As ever, in the job's own code; in another job's nothing happens."""
        return _owner.get() in (None, self.owner) and super().cancel(msg)

    def __await__(self) -> Generator[Any, None, Any]:
        """As ever, in the job's own code; another job that awaits it can be cancelled, and this one goes on."""
        if self.done() or _owner.get() in (None, self.owner):
            return super().__await__()
        return asyncio.shield(self).__await__()

    def end(self) -> None:
        """Cancel it, and so what it awaits, as its own code: a timer runs in the context of the job that set it."""
        token = _owner.set(self.owner)
        try:
            super().cancel()
        finally:
            _owner.reset(token)


class LaneTasks:
    """Those of one attempt in one lane. ``lanes``: the slot's, for the steps of its tasks."""

    def __init__(self, lanes: Lanes, lane: int) -> None:
        self._lanes = lanes
        #: ``None`` once the attempt is over: its lane may be another's
        self.lane: int | None = lane
        self._shown = lane
        #: of the job, once it has begun
        self.deadline: Deadline | None = None
        self.job: Current | None = None
        #: whether it is a function in a thread, which cannot be ended alone
        self.is_plain = False
        #: what the job has made and what still runs of it
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
        """A task that the job makes. ``options`` as of ``asyncio.Task``."""
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

    def end(self) -> None:
        """The attempt is over: what still runs of it is in nobody's lane."""
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
    """That of the job whose code runs here; ``None`` outside of one."""
    return _owner.get()


def make_task(lanes: Lanes, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> _Task:
    """The loop's task factory, for the slot with these ``lanes``. What is no job's is shown as common to all."""
    owner = _owner.get()
    # A generator is closed where garbage is collected, which may be in another job's code.
    if closes_a_generator(work) or not asyncio.iscoroutine(work):
        return asyncio.Task(work, loop=loop, **options)
    if owner is None:
        return asyncio.Task(Stepped(work, lanes, lanes.common), loop=loop, **options)
    return owner.make(loop, work, **options)
