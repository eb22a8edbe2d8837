"""Importing the user's modules: after the fork, so that a recycled worker runs new code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import TypeVar

from queuepool.errors import BootFailure
from queuepool.jobs.registry import REGISTRY
from queuepool.jobs.unserved import NO_MODULES
from queuepool.log.tracebacks import summary, traceback_of
from queuepool.unix.exit_codes import BROKEN
from queuepool.worker import django_support
from queuepool.worker.module_hints import is_missing, problem_of, shadowed_by_python, without_jobs

T = TypeVar("T")


def other_threads() -> int:
    """Of Python's, those besides the one that asks: a fork has none of them."""
    return len(sys._current_frames()) - 1


def import_jobs(modules: Iterable[str], listeners: Iterable[str]) -> None:
    """Raises ``BootFailure`` also where no job is there, named ``modules`` or not.

    A worker without jobs would fail, as unknown, every job that it takes. One of several modules may have none: it may
    set up what the others need.
    """
    imported = import_application(modules)
    import_modules(listeners)
    if not REGISTRY.names():
        raise BootFailure(without_jobs(imported) if imported else NO_MODULES)


def import_application(modules: Iterable[str]) -> list[ModuleType]:
    """Before the modules Django, where ``DJANGO_SETTINGS_MODULE`` is set. Raises ``BootFailure``."""
    _carry_out(os.environ.get("DJANGO_SETTINGS_MODULE", ""), django_support.set_up)
    return import_modules(modules)


def import_modules(names: Iterable[str]) -> list[ModuleType]:
    """Raises ``BootFailure`` with the original traceback, our own frames left out."""
    imported = []
    for name in names:
        imported.append(_carry_out(name, partial(importlib.import_module, name)))
        if problem := shadowed_by_python(imported[-1]):
            raise BootFailure(problem)
    return imported


def _carry_out(name: str, step: Callable[[], T]) -> T:
    """One step of a boot, which runs the user's code in the module ``name``. Raises ``BootFailure``."""
    pid = os.getpid()
    # As `python -m` would: the project's directory, which a console script does not have.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return step()
    # SystemExit too: a module that calls sys.exit() at its import has not been imported.
    except BaseException as error:
        raise BootFailure(problem_of(name, error), "" if is_missing(name, error) else _frames_of(error)) from error
    finally:
        if os.getpid() != pid:
            os._exit(BROKEN)  # a copy that the module forked: it would be a second worker in our place


def _frames_of(error: BaseException) -> str:
    """The traceback without its last line, where that is what the problem says."""
    head, _, last = traceback_of(error).rstrip("\n").rpartition("\n")
    return head if last == summary(error) else f"{head}\n{last}"
