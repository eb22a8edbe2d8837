"""``@around``: generator functions that run around each attempt at a job, in its worker."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TypeVar

from queuepool.jobs.current_job import Current

Hook = Callable[[Current], Iterator[None]]
H = TypeVar("H", bound=Hook)
#: in order of registration
HOOKS: list[Hook] = []


def around(hook: H) -> H:
    """Register a generator function: the code before its ``yield`` runs before each job, the rest after it.

    It gets the job that ``current()`` returns. Hooks are entered in order of registration and left in reverse, within
    the job's timeout. What the job raises is raised at the ``yield``; it remains the job's error even if the hook
    catches it. A hook that raises, or does not yield once, is reported as ``HookRaised`` and changes nothing. Async
    jobs run in the hook's ``contextvars``. A killed attempt never returns to the ``yield``: the steward emits
    ``JobTimedOut`` or ``JobLost`` for it. Raises ``TypeError`` if it is not a generator function.
    """
    is_generator: bool = inspect.isgeneratorfunction(hook)
    if not is_generator:
        name = getattr(hook, "__qualname__", repr(hook))
        raise TypeError(f"@around {name}: it must be a generator function with one yield, neither async nor wrapped")
    HOOKS.append(hook)
    return hook
