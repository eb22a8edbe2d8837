"""A pool that is down while its parent tries it again: why, for all to read, and the signal that a verb has for it.

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
#: what verbs send: a job may have written the file
_KNOWN = {signum.name: signum for signum in (*STOPS, signal.SIGHUP, signal.SIGUSR2, signal.SIGCONT)}


def note(place: Path, cause: str) -> None:
    """For the parent, which this process is: the pool in this directory is down, and is tried again."""
    with suppress(OSError):  # no room, or a directory that is not ours: then it is in the log alone
        place.mkdir(mode=0o700, exist_ok=True)
        replace_text(place / _NOTE, f"{BoardName.own()}\n{cause}")


def forget(place: Path) -> None:
    """For the parent: it is not down any more, or not tried again."""
    for name in (_NOTE, _SIGNAL):
        with suppress(OSError):
            (place / name).unlink()


def cause_of(place: Path) -> str | None:
    """Why the pool in this directory is down, if its parent lives and tries it again."""
    name, _, cause = text_in(place / _NOTE).partition("\n")
    return cause if name and BoardName.parsed(Path(name)).has_master else None


def leave(place: Path, signum: signal.Signals) -> None:
    """Leave the signal, which a master would get, for the parent of a pool that is down. Raises ``OSError``."""
    replace_text(place / _SIGNAL, signum.name)


def taken(place: Path) -> signal.Signals | None:
    """For the parent: the last signal that was left since it looked before."""
    if not (name := text_in(place / _SIGNAL)):
        return None
    with suppress(OSError):
        (place / _SIGNAL).unlink()
    return _KNOWN.get(name)
