"""Calling the user's code: plain or async, and going on in the worker alone, not in a copy that the code has forked."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable

from queuepool.events import JobFacts, TasksLeft
from queuepool.events.listeners import Listeners
from queuepool.unix.exit_codes import BROKEN
from queuepool.worker.django_support import around
from queuepool.worker.job_loop import JobLoop, Left


class Invoker:
    """All async calls of a worker share one loop, as long as nothing is left on it."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._pid = os.getpid()
        self._loop: JobLoop | None = None
        #: kept, so that nothing of them runs in mid-job, when the collector finds them
        self._abandoned: list[Left] = []
        #: whether there may be something to ``clear``
        self.has_awaited = False

    def call(self, function: Callable[[], object]) -> None:
        """Raises whatever it raises."""
        result = function()
        if result is not None and inspect.isawaitable(result):
            if self._loop is None or self._loop.is_closed:
                self._loop = JobLoop()
            self.has_awaited = True
            self._loop.run(around(result))

    def clear(self, job: JobFacts) -> None:
        """End what this job or its hook has left on the loop, and tell of it. Tasks that do not end keep the loop."""
        self.has_awaited = False
        left = self._loop.clear() if self._loop else Left(0, set())
        if left.refusing and self._loop:
            self._abandoned.append(left)
            self._loop.close()
            self._loop = None
        if left.cancelled:
            self._listeners.tell(TasksLeft(job, left.cancelled, len(left.refusing)))

    def leave_if_forked(self) -> None:
        """A job that forked and returned in both: only the worker itself may go on to settle it."""
        if os.getpid() != self._pid:
            os._exit(BROKEN)
