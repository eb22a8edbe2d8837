"""A pool that is down while its parent retries it: why, for all to read, and the signal that a command has for it.

Both are files in the pool's directory: there is no master to signal, and the parent has others to look after.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

from queuepool.board.board import BoardName
from queuepool.board.boot_report import replace_text, text_in
from queuepool.unix.signals import STOPS

_NOTE, _SIGNAL = "retried", "signal"
#: what commands send: a job may have written the file
_KNOWN = {signum.name: signum for signum in (*STOPS, signal.SIGHUP, signal.SIGUSR2, signal.SIGCONT)}


def note(place: Path, cause: str) -> None:
    """By the parent, which is this process: the pool in this directory is down, and is retried."""
    with suppress(OSError):  # no room, or a directory that is not ours: then it is in the log alone
        place.mkdir(mode=0o700, exist_ok=True)
        replace_text(place / _NOTE, f"{BoardName.own()}\n{cause}")


def forget(place: Path) -> None:
    """By the parent: it is no longer down, or no longer retried."""
    for name in (_NOTE, _SIGNAL):
        with suppress(OSError):
            (place / name).unlink()


def cause_of(place: Path) -> str | None:
    """Why the pool in this directory is down, if its parent lives and retries it."""
    name, _, cause = text_in(place / _NOTE).partition("\n")
    return cause if name and BoardName.parsed(Path(name)).has_master else None


def leave(place: Path, signum: signal.Signals) -> None:
    """Leave a signal for the parent of a pool that is down, as it has no master to get it. Raises ``OSError``."""
    replace_text(place / _SIGNAL, signum.name)


def taken(place: Path) -> signal.Signals | None:
    """By the parent: the last signal that was left since the last call."""
    if not (name := text_in(place / _SIGNAL)):
        return None
    with suppress(OSError):
        (place / _SIGNAL).unlink()
    return _KNOWN.get(name)
