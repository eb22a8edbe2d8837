"""Importing the user's modules: after the fork, so that a recycled worker runs new code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial

from queuepool import django_support
from queuepool.errors import BootFailure
from queuepool.failures import traceback_of
from queuepool.fork import BROKEN


def other_threads() -> int:
    """Of Python's, those besides the one that asks: a fork has none of them."""
    return len(sys._current_frames()) - 1


def import_application(names: Iterable[str]) -> None:
    """The modules with jobs; before them Django, where ``DJANGO_SETTINGS_MODULE`` is set. Raises ``BootFailure``."""
    settings = f"Django's settings {os.environ.get('DJANGO_SETTINGS_MODULE')}"
    _boot([(settings, django_support.set_up), *((name, partial(importlib.import_module, name)) for name in names)])


def import_modules(names: Iterable[str]) -> None:
    """Raises ``BootFailure`` with the original traceback, our own frames left out."""
    _boot((name, partial(importlib.import_module, name)) for name in names)


def _boot(steps: Iterable[tuple[str, Callable[[], object]]]) -> None:
    pid = os.getpid()
    # As `python -m` would: the project's directory, which a console script does not have.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name, step in steps:
        try:
            step()
        # SystemExit too: a module that calls sys.exit() at its import has not been imported.
        except BaseException as error:
            raise BootFailure(name, traceback_of(error)) from error
        finally:
            if os.getpid() != pid:
                os._exit(BROKEN)  # a copy that the module forked: it would be a second worker in our place
