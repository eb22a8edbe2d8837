"""Settings that a program gives in place of a configuration file, as a Django project does; and how it is called."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from queuepool.config.entries import Document
from queuepool.config.urls import masked


def _ourselves() -> tuple[str, ...]:
    """The words that run this command line again, with Python's path as here."""
    # Without -P the working directory comes first, unlike in the console script, and a queue.py there hides Python's.
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
    #: the same, as a user would type them
    typed: str = "queuepool"


_read: Callable[[], Source] = Source


def provide(read: Callable[[], Source]) -> None:
    """Take the settings from here, in this process, wherever no file is named. They are read when they are needed."""
    global _read
    _read = read


def source() -> Source:
    """The settings that this process was given; empty without any."""
    return _read()


def migrate_command(program: str, path: Path | None, overrides: Mapping[str, str]) -> str:
    """The command that creates a queue's tables, as errors advise it: when typed, it finds the same database.

    With the configuration's file and the URL, where they were given; a login is left out.
    """
    words = ["-c", str(path)] if path else []
    if url := overrides.get("connection.url", "").strip(" \t"):
        words += ["--url", url if masked(url) == url else "..."]
    return " ".join([program, "migrate", *map(shlex.quote, words)])
