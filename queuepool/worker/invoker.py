"""Call user code, plain or async: handlers and hooks. If it forks, only the worker itself goes on, not the copy.

Async code runs on an event loop that is clean after each job, except for what clients keep open on it. A soft timeout
is raised only in the handler, never in the hooks. No hook can change how the job ends.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from queuepool import stores
from queuepool.errors import SoftTimeout
from queuepool.events import HookRaised, JobFacts, TasksLeft, listeners
from queuepool.events.listeners import Listeners
from queuepool.jobs.around import HOOKS, Hook
from queuepool.jobs.current_job import Current
from queuepool.settlement.facts import facts_of
from queuepool.unix import at_fork, signals
from queuepool.worker.django_support import around, around_beside, renew_connections

if TYPE_CHECKING:
    from queuepool.unix.posix_timer import PosixTimer

_SIGNAL = signal.SIGRTMIN
#: seconds until the next try if the signal came in code that is not the handler's
_AGAIN = 0.001
#: an exception out of these frames would lose a stop signal, be ignored around a fork, look like the listener's own, or
#: interrupt a command to a store: it would be unknown whether a push was stored, and a client with C code has crashed
_SHIELDED = (signals.__file__, at_fork.__file__, listeners.__file__, stores.__path__[0])
#: seconds that cancelled tasks have to end, within the timeout of the job that left them
_CANCEL_TIMEOUT = 5.0
_Task = asyncio.Task[object]
Steps = Generator[None, None, object]


class Invoker:
    """Calls one worker's user code. Async calls share one event loop, until a task on it refuses to end."""

    #: called before and after each job
    renew_connections = staticmethod(renew_connections)

    def __init__(self, listeners: Listeners, new_loop: Callable[[], JobLoop] | None = None) -> None:
        self._listeners = listeners
        self._new_loop = new_loop or JobLoop
        self._pid = os.getpid()
        self._loop: JobLoop | None = None
        self._soft_timer = SoftTimer()
        #: kept, so that garbage collection never runs their code in the middle of a job
        self._abandoned: list[Leftovers] = []
        #: whether there may be something to ``clear``
        self.has_awaited = False
        #: what to call when a handler that seems to be a plain function returns what is awaited
        self.awaits: Callable[[], object] | None = None

    def call(self, function: Callable[[], object]) -> object:
        """Call the function and await its result, if that is awaitable. Raises whatever it raises."""
        result = function()
        if result is None or not inspect.isawaitable(result):
            return result
        return self._await(result)

    def call_within(self, function: Callable[[], object], soft_timeout: float) -> object:
        """Like ``call``, but raises ``SoftTimeout`` in the function after ``soft_timeout`` seconds; 0 = never."""
        if not soft_timeout:
            return self.call(function)
        end = time.monotonic() + soft_timeout
        result = self._soft_timer.call(function, soft_timeout)
        if result is None or not inspect.isawaitable(result):
            return result
        return self._await(limited(result, end - time.monotonic(), soft_timeout))

    def _await(self, work: Awaitable[object]) -> object:
        if self._loop is None or self._loop.is_closed:
            self._loop = self._new_loop()
        self.has_awaited = True
        if self.awaits:
            self.awaits()
        return self._loop.run(around(work, self.renew_connections))

    def cancel(self) -> bool:
        """From a signal's handler: cancel the coroutine that is awaited; ``False`` if none is."""
        return self._loop is not None and self._loop.cancel()

    def tasks(self) -> Collection[_Task]:
        """All tasks that run on its loop."""
        return self._loop.tasks() if self._loop else ()

    def clear(self, job: JobFacts) -> None:
        """Cancel the tasks that this job or its hook left, and report them. If some do not end, abandon the loop."""
        self.has_awaited = False
        leftovers = self._loop.clear() if self._loop else Leftovers(0, set())
        if leftovers.refusing and self._loop:
            self._abandoned.append(leftovers)
            self._loop.close()
            self._loop = None
        if leftovers.cancelled:
            self._listeners.emit(TasksLeft(job, leftovers.cancelled, len(leftovers.refusing)))

    def leave_if_forked(self, error: BaseException | None = None) -> None:
        """Exit if this is a child that the job forked and that came back here: only the worker may settle the job."""
        if os.getpid() != self._pid:
            at_fork.leave(error)


class SoftTimer:
    """Calls handlers that have a soft timeout; makes the kernel's timer for the first of them.

    The signal may come at any moment, even as the handler returns. So the timer's Python handler raises only while
    ``_runs``, which changes in the lines next to the call, and only in frames that the call has made. It raises once:
    the code that has caught it is not known, and may be cleaning up. It raises again only if no code could catch it:
    Python ignores what some callbacks raise, such as those of weak references, and calls ``sys.unraisablehook``.
    """

    def __init__(self) -> None:
        self._timer: PosixTimer | None = None
        self._runs = False
        self._seconds = 0.0
        #: the hook that is in force otherwise, once ours is
        self._usual_hook: Callable[[Any], object] | None = None

    def call(self, function: Callable[[], object], seconds: float) -> object:
        """Call the function, in the main thread, and raise ``SoftTimeout`` in it after ``seconds``.

        Code that blocks in C raises when it returns to Python; a system call returns at once (PEP 475).
        """
        timer = self._prepared(seconds)
        try:
            self._runs = True
            _arm(timer, seconds)
            return function()
        finally:
            self._runs = False
            timer.arm(0.0)
            self._leave_hook()

    def _prepared(self, seconds: float) -> PosixTimer:
        self._seconds = seconds
        # Each time: user code may have changed handler and mask. A signal that it had blocked is handled now, too late.
        signals.listen_for(_SIGNAL, self._on_signal)
        if self._timer is None:
            from queuepool.unix.posix_timer import PosixTimer  # imported here: few workers have such jobs

            self._timer = PosixTimer(_SIGNAL)
        return self._timer

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if not self._runs or self._timer is None:
            return  # too late: the handler has ended
        if not _is_in_handler(frame):
            self._timer.arm(_AGAIN)
            return
        self._runs = False
        self._take_hook()
        raise SoftTimeout(self._seconds)

    def _take_hook(self) -> None:
        if self._usual_hook is None:
            self._usual_hook, sys.unraisablehook = sys.unraisablehook, self._on_ignored

    def _leave_hook(self) -> None:
        if self._usual_hook is not None:
            if sys.unraisablehook == self._on_ignored:  # else the job has set its own
                sys.unraisablehook = self._usual_hook
            self._usual_hook = None

    def _on_ignored(self, ignored: sys.UnraisableHookArgs) -> None:
        if isinstance(ignored.exc_value, SoftTimeout) and self._timer:
            self._runs = True
            self._timer.arm(_AGAIN)
        elif self._usual_hook is not None:
            self._usual_hook(ignored)


def _arm(timer: PosixTimer, seconds: float) -> None:
    """Has a frame of its own: a process that is stopped in it may get the signal before the handler has begun."""
    timer.arm(seconds)


_CALL = SoftTimer.call.__code__
#: what runs below the call and is not the handler's: from there an exception would not reach it
_OURS = {_arm.__code__, SoftTimer._on_signal.__code__, SoftTimer._on_ignored.__code__}
#: code that has just taken a lock, or is about to release one. An exception there would leave it taken for ever, and it
#: may be that of a queue, an event or a service's client, which later jobs need too
_AT_A_LOCK = {threading.Condition.__enter__.__code__, threading.Condition.__exit__.__code__}


def _is_in_handler(frame: FrameType | None) -> bool:
    """Whether an exception in this frame reaches the handler: the frame is its own, or of code that it called."""
    if frame is None or frame.f_code is _CALL or frame.f_code in _AT_A_LOCK:
        return False  # about to begin, or just ended
    while frame is not None and frame.f_code is not _CALL:
        # Python ignores what a __del__ raises; and it must not come out of the code that puts it off.
        code = frame.f_code
        if code in _OURS or code.co_filename.startswith(_SHIELDED) or code.co_name == "__del__":
            return False
        frame = frame.f_back
    return True


async def limited(work: Awaitable[object], seconds: float, soft_timeout: float) -> object:
    """Await the work; cancel it after ``seconds``. Raises ``SoftTimeout`` if that cancellation ended it."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if limit.expired() and isinstance(error.__cause__, asyncio.CancelledError):
            raise SoftTimeout(soft_timeout) from error.__cause__
        raise


class Leftovers(NamedTuple):
    """How many leftover tasks were cancelled, and the tasks that did not end."""

    cancelled: int
    refusing: set[_Task]


class JobLoop:
    """Runs the coroutines of one job after another."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        #: what it runs, and whether that only cleans up after a job
        self._task: _Task | None = None
        self._clears = False

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def run(self, work: Awaitable[object]) -> object:
        """Run until it is done, even if other code stops the loop meanwhile. Raises whatever it raises."""
        task = self._task = self._loop.create_task(_awaited(work))
        try:
            return self._until_done(task)
        finally:
            self._task = None
            del task  # as below

    def tasks(self) -> Collection[_Task]:
        """All tasks that run on it."""
        return asyncio.all_tasks(self._loop)

    def cancel(self) -> bool:
        """From a signal's handler: cancel what it runs for a job; ``False`` if there is none."""
        task = self._task
        if task is None or task.done() or self._clears:
            return False
        with suppress(RuntimeError):  # the job has closed the loop
            self._loop.call_soon_threadsafe(task.cancel)  # which also ends the loop's wait
        return True

    def _until_done(self, task: _Task) -> object:
        ended: list[_Task] = []
        task.add_done_callback(ended.append)
        task.add_done_callback(lambda _: self._loop.stop())
        try:
            # An earlier job's timer, or this job's last step, may stop the loop before our callback has run; left over,
            # the callback would stop the next job's run.
            while not ended:
                self._loop.run_forever()
            return task.result()
        finally:
            if task.done() and not task.cancelled():
                task.exception()  # retrieved, even if something else is raised: SystemExit bypasses the task
            del task, ended[:]  # the error's traceback holds this frame, and the task holds the error

    def clear(self) -> Leftovers:
        """Cancel leftover tasks and wait for them to end. This counts as the job's time: its alarm is still set."""
        tasks = asyncio.all_tasks(self._loop)
        if not tasks:
            return Leftovers(0, tasks)
        self._clears = True
        try:
            found = self.run(_cleared())
        # Whatever a cancelled task raises, even SystemExit, must end neither the worker nor the next job.
        except BaseException:  # noqa: BLE001
            return Leftovers(len(tasks), tasks)
        finally:
            self._clears = False
        return found if isinstance(found, Leftovers) else Leftovers(0, tasks)

    def close(self) -> None:
        self._loop.close()


async def _awaited(work: Awaitable[object]) -> object:
    return await work


async def _cleared() -> Leftovers:
    await asyncio.sleep(0)  # tasks about to end do so by themselves
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    until = loop.time() + _CANCEL_TIMEOUT
    cancelled: set[_Task] = set()
    while (remaining := asyncio.all_tasks() - {me}) and (now := loop.time()) < until:
        for task in remaining - cancelled:
            if not closes_a_generator(task.get_coro()):
                task.cancel()
                cancelled.add(task)
        await asyncio.wait(remaining, timeout=until - now)
    return Leftovers(len(cancelled), remaining)


def closes_a_generator(work: object) -> bool:
    """Whether it is the loop's own work, to close an unexhausted async generator: it ends soon, and no job left it."""
    return type(work).__name__.startswith("async_generator")


class Entered(NamedTuple):
    """An ``@around`` hook that an attempt has entered."""

    name: str
    steps: Steps


class JobHooks:
    """Calls hooks. They are user code: what one raises is reported and does no harm."""

    def __init__(self, listeners: Listeners, invoker: Invoker) -> None:
        self._listeners = listeners
        self._invoker = invoker

    def call(self, job: Current, name: str, hook: Callable[[], object]) -> None:
        """Call the hook of this name; await what it returns."""
        try:
            with job.in_hook():
                self._invoker.call(hook)
        except BaseException as error:  # noqa: BLE001 - even SystemExit
            self._invoker.leave_if_forked(error)
            self._report(job, name, error)
        self._invoker.leave_if_forked()

    async def wait_for(self, job: Current, name: str, hook: Callable[[], object]) -> None:
        """Like ``call``, on a loop that runs."""
        try:
            with job.in_hook():
                returned = hook()
                if inspect.isawaitable(returned):
                    await around_beside(returned)
        except BaseException as error:  # noqa: BLE001 - even SystemExit
            self._invoker.leave_if_forked(error)
            self._report(job, name, error)
        self._invoker.leave_if_forked()

    def enter(self, job: Current) -> list[Entered]:
        """Run the ``@around`` hooks up to their ``yield``."""
        entered = [one for hook in HOOKS if (one := self._entered(hook, job))]
        self._invoker.leave_if_forked()
        return entered

    def _entered(self, hook: Hook, job: Current) -> Entered | None:
        name = f"around {hook.__module__}.{hook.__qualname__}"
        try:
            with job.in_hook():
                steps = cast("Steps", hook(job))
                next(steps)
        except StopIteration:
            self._report(job, name, RuntimeError("it did not yield"))
        # Whatever a hook raises, even SystemExit, does not affect the job.
        except BaseException as raised:  # noqa: BLE001
            self._report(job, name, raised)
        else:
            return Entered(name, steps)
        return None

    def leave(self, job: Current, entered: list[Entered], error: BaseException | None) -> None:
        """Run the rest of the hooks, the last entered first; the job's ``error``, if any, is raised at ``yield``."""
        traceback = error.__traceback__ if error is not None else None
        while entered:
            name, steps = entered.pop()
            with job.in_hook():
                problem = _problem(steps, error)
            if problem is not None:
                self._report(job, name, problem)
        if error is not None:
            error.__traceback__ = traceback  # without the frames of hooks, and of this file
        self._invoker.leave_if_forked()

    def _report(self, job: Current, name: str, error: BaseException) -> None:
        """Report what the hook of this name raised or did wrong."""
        self._listeners.emit(HookRaised(facts_of(job.payload, job.queue), name, error))


def _problem(steps: Steps, error: BaseException | None) -> BaseException | None:
    """What the hook raises, other than the job's own error, or does wrong; ``None`` = nothing."""
    try:
        next(steps) if error is None else steps.throw(error)
    except StopIteration:
        return None
    except BaseException as raised:  # noqa: BLE001 - as above
        # A StopIteration from the job comes out of a generator as the cause of a RuntimeError (PEP 479).
        is_the_jobs = error is not None and (raised is error or raised.__cause__ is error)
        return None if is_the_jobs else raised
    return _closed(steps)


def _closed(steps: Steps) -> BaseException:
    try:
        steps.close()
    except BaseException as raised:  # noqa: BLE001 - as above
        return raised
    return RuntimeError("it yielded twice: what follows its second yield has not run")
