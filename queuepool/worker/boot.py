"""Import the user's modules: after the fork, so that a recycled worker runs new code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import TypeVar

from queuepool.errors import BootFailure
from queuepool.jobs import at_import
from queuepool.jobs.registry import REGISTRY
from queuepool.jobs.unserved import NO_MODULES
from queuepool.log.captured import log_incomplete
from queuepool.log.tracebacks import summary, traceback_of
from queuepool.unix import at_fork
from queuepool.unix.places import working_directory
from queuepool.worker import django_support
from queuepool.worker.module_hints import is_missing, problem_of, shadowed_by_python, without_jobs

T = TypeVar("T")


def other_threads() -> int:
    """How many Python threads run besides the calling one: a fork has none of them."""
    return len(sys._current_frames()) - 1


def import_jobs(modules: Iterable[str], listeners: Iterable[str]) -> None:
    """Import modules and listeners. Raises ``BootFailure``, also if no job is registered afterwards.

    A worker without jobs would fail every job that it takes as unknown. One of several modules may register none: it
    may set up what the others need.
    """
    imported = import_application(modules)
    import_modules(listeners)
    if not REGISTRY.names():
        raise BootFailure(without_jobs(imported, REGISTRY.without_handle) if imported else NO_MODULES)


def import_application(modules: Iterable[str]) -> list[ModuleType]:
    """Set up Django if ``DJANGO_SETTINGS_MODULE`` is set, then import the modules. Raises ``BootFailure``."""
    _carry_out(os.environ.get("DJANGO_SETTINGS_MODULE", ""), django_support.set_up)
    return import_modules(modules)


def import_modules(names: Iterable[str]) -> list[ModuleType]:
    """Import each module. Raises ``BootFailure`` with the original traceback, without our own frames."""
    imported = []
    for name in names:
        imported.append(_carry_out(name, partial(importlib.import_module, name)))
        if problem := shadowed_by_python(imported[-1]):
            raise BootFailure(problem)
    return imported


def _carry_out(name: str, step: Callable[[], T]) -> T:
    """Run one step of a boot, which runs user code in the module ``name``. Raises ``BootFailure``."""
    pid = os.getpid()
    # Like `python -m`: a console script does not have the working directory on its path.
    here = working_directory()
    if here and str(here) not in sys.path:
        sys.path.insert(0, str(here))
    try:
        with at_import.under_way():
            return step()
    # Even SystemExit: a module that calls sys.exit() at its import has not been imported.
    except BaseException as error:
        at_fork.leave_if_copy(pid, error)
        raise BootFailure(problem_of(name, error), "" if is_missing(name, error) else _frames_of(error)) from error
    finally:
        at_fork.leave_if_copy(pid)  # a child that the module forked would be a second worker in this slot
        log_incomplete()  # else what the module printed would begin the first job's line


def _frames_of(error: BaseException) -> str:
    """The traceback, without its last line if the problem already says the same."""
    head, _, last = traceback_of(error).rstrip("\n").rpartition("\n")
    return head if last == summary(error) else f"{head}\n{last}"
