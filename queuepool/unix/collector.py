"""How often Python's garbage collector runs: rarely while a command imports its libraries, as usual for jobs."""

from __future__ import annotations

import gc

#: new objects between two collections: so many that they cost a command nothing; a higher number makes no difference
_RARELY = 10_000

_usual = gc.get_threshold()


def expect_imports() -> None:
    """Collect rarely: imports leave no garbage, and looking for it takes a tenth of a command's time."""
    gc.set_threshold(_RARELY, *_usual[1:])


def expect_jobs() -> None:
    """Collect as often as Python does by itself, and freeze what exists: its pages stay shared after a fork."""
    gc.freeze()
    gc.set_threshold(*_usual)
