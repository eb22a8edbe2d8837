"""``@around`` and ``@lifespan``: generator functions around each attempt at a job, and around all jobs of a worker.

Those of a worker are async, and run on the event loop of its jobs.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

from queuepool.jobs.current_job import Current

Hook = Callable[[Current], Iterator[None]]
H = TypeVar("H", bound=Hook)
#: in order of registration
HOOKS: list[Hook] = []
Lifespan = Callable[[], AsyncIterator[None]]
L = TypeVar("L", bound=Lifespan)
#: in order of registration
LIFESPANS: list[Lifespan] = []


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


def lifespan(function: L) -> L:
    """Register an async generator function: what is before its ``yield`` runs before a worker's first job.

    The rest runs after the worker's last job, for at most 5 seconds; a worker that is killed never gets there. So
    clients that belong to an event loop are opened once, on the loop on which the jobs run. ``contextvars`` that it
    sets before the ``yield`` are set in every job. What it raises there is a failure to boot, and so is a start that
    takes longer than ``boot_timeout``. Several are entered in order of registration and left in reverse.

    It needs a pool with a ``concurrency`` above 1: with 1 no event loop lasts as long as its worker, which refuses to
    boot. Raises ``TypeError`` if it is not an async generator function.
    """
    is_generator: bool = inspect.isasyncgenfunction(function)
    if not is_generator:
        raise TypeError(f"@lifespan {lifespan_name(function)}: it must be an async generator function with one yield")
    LIFESPANS.append(function)
    return function


def lifespan_name(function: object) -> str:
    """The function's name, with that of its module."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
