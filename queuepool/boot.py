"""Importing the user's modules: after the fork, so that a recycled worker runs new code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable

from queuepool.errors import BootFailure
from queuepool.failures import traceback_of
from queuepool.fork import BROKEN


def other_threads() -> int:
    """Of Python's, those besides the one that asks: a fork has none of them."""
    return len(sys._current_frames()) - 1


def import_modules(names: Iterable[str]) -> None:
    """Raises ``BootFailure`` with the original traceback, our own frames left out."""
    pid = os.getpid()
    # As `python -m` would: the project's directory, which a console script does not have.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        # SystemExit too: a module that calls sys.exit() at its import has not been imported.
        except BaseException as error:
            raise BootFailure(name, traceback_of(error)) from error
        finally:
            if os.getpid() != pid:
                os._exit(BROKEN)  # a copy that the module forked: it would be a second worker in our place
