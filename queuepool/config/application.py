"""Settings that a program gives in place of a configuration file, as a Django project does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from queuepool.config.ini_file import Document


def _ourselves() -> tuple[str, ...]:
    """The words that run this command line again, with Python's path as here."""
    # Without -P the working directory comes first, unlike in the console script, and a queue.py there before Python's.
    safe = () if _finds_modules_here() else ("-P",)
    return (sys.executable, *safe, "-m", "queuepool")


def _finds_modules_here() -> bool:
    try:
        return bool({"", os.getcwd()} & set(sys.path))
    except OSError:  # the working directory was removed
        return False


@dataclass(frozen=True, slots=True)
class Source:
    """Where settings come from if no file is named."""

    document: Document = field(default_factory=Document)
    #: the base of relative paths
    folder: Path = Path()
    #: how errors and ``check`` name it; empty: there are no settings
    name: str = ""
    #: the words that run the command line with these settings
    command: tuple[str, ...] = field(default_factory=_ourselves)
    #: the same, as somebody would type them
    typed: str = "queuepool"


_read: Callable[[], Source] = Source


def provide(read: Callable[[], Source]) -> None:
    """Take the settings from here, in this process, wherever no file is named. They are read when they are needed."""
    global _read
    _read = read


def source() -> Source:
    """The settings that this process was given; empty without any."""
    return _read()
