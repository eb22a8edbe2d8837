"""Call the hooks of a job: ``@around``, ``after_succeeded``, ``after_failed``. None of them changes how it ends."""

from __future__ import annotations

from collections.abc import Callable

from queuepool.events import HookRaised
from queuepool.events.listeners import Listeners
from queuepool.jobs.current_job import Current
from queuepool.worker.invoker import Invoker
from queuepool.worker.preparation import Attempt
from queuepool.worker.surrounding import Surrounding


class JobHooks:
    """Hooks are user code: what one raises is reported, and harms nothing."""

    def __init__(self, listeners: Listeners, invoker: Invoker) -> None:
        self._listeners = listeners
        self._invoker = invoker

    def enter(self, attempt: Attempt, job: Current) -> Surrounding:
        """Enter the hooks of ``@around``."""
        surrounding = Surrounding(job, lambda name, error: self._report(attempt, name, error))
        self._invoker.leave_if_forked()
        return surrounding

    def call(self, attempt: Attempt, name: str, hook: Callable[[], object]) -> None:
        """Call the hook of this name; await what it returns."""
        try:
            self._invoker.call(hook)
        except BaseException as error:  # noqa: BLE001 - even SystemExit
            self._invoker.leave_if_forked(error)
            self._report(attempt, name, error)
        self._invoker.leave_if_forked()

    def _report(self, attempt: Attempt, name: str, error: BaseException) -> None:
        self._listeners.emit(HookRaised(attempt.facts, name, error))
