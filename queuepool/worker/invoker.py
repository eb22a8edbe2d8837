"""Call user code, plain or async. If that code forks, only the worker itself goes on, not the copy."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Awaitable, Callable

from queuepool.events import JobFacts, TasksLeft
from queuepool.events.listeners import Listeners
from queuepool.unix import at_fork
from queuepool.worker.django_support import around, renew_connections
from queuepool.worker.job_loop import JobLoop, Leftovers
from queuepool.worker.soft_timeout import SoftTimer, limited


class Invoker:
    """A worker's async calls share one event loop, until a task on it does not end."""

    #: called before and after each job
    renew_connections = staticmethod(renew_connections)

    def __init__(self, listeners: Listeners, new_loop: Callable[[], JobLoop] = JobLoop) -> None:
        self._listeners = listeners
        self._new_loop = new_loop
        self._pid = os.getpid()
        self._loop: JobLoop | None = None
        self._soft_timer = SoftTimer()
        #: kept, so that garbage collection never runs their code in the middle of a job
        self._abandoned: list[Leftovers] = []
        #: whether there may be something to ``clear``
        self.has_awaited = False

    def call(self, function: Callable[[], object]) -> object:
        """Call the function and await its result, if that is awaitable. Raises whatever it raises."""
        result = function()
        if result is None or not inspect.isawaitable(result):
            return result
        return self._await(result)

    def call_within(self, function: Callable[[], object], soft_timeout: float) -> object:
        """As ``call``, but ``SoftTimeout`` is raised in it after ``soft_timeout`` seconds; 0 = never."""
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
        return self._loop.run(around(work, self.renew_connections))

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
        """Exit in a child that the job forked and that returned or raised too: only the worker may settle the job."""
        at_fork.leave_if_copy(self._pid, error)
