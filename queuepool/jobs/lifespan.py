"""``@lifespan``: async generator functions that run around all jobs of a worker, on the event loop of its jobs."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

Lifespan = Callable[[], AsyncIterator[None]]
L = TypeVar("L", bound=Lifespan)
#: in order of registration
LIFESPANS: list[Lifespan] = []


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
        raise TypeError(f"@lifespan {name_of(function)}: it must be an async generator function with one yield")
    LIFESPANS.append(function)
    return function


def name_of(function: object) -> str:
    """The function's name, with that of its module."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
