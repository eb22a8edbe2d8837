"""The hooks of a job: ``@around``, ``after_succeeded``, ``after_failed``. No hook can change how the job ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import NamedTuple, cast

from queuepool.events import HookRaised
from queuepool.events.listeners import Listeners
from queuepool.jobs.around import HOOKS, Hook
from queuepool.jobs.current_job import Current
from queuepool.settlement.facts import facts_of
from queuepool.worker.django_support import around_beside
from queuepool.worker.invoker import Invoker

Steps = Generator[None, None, object]


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
            self._invoker.call(hook)
        except BaseException as error:  # noqa: BLE001 - even SystemExit
            self._invoker.leave_if_forked(error)
            self._report(job, name, error)
        self._invoker.leave_if_forked()

    async def wait_for(self, job: Current, name: str, hook: Callable[[], object]) -> None:
        """Like ``call``, on a loop that runs."""
        try:
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
