"""A pool that is down while its parent tries it again: why, for all to read, and what a verb asks of the parent.

Both are files in the pool's directory: there is no master to signal, and the parent has others to look after.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from queuepool.board.board_name import BoardName
from queuepool.board.boot_report import replace_text, text_in

#: what a verb may ask
STOP, RETRY, PAUSE, CONTINUE = "stop", "retry", "pause", "continue"
_NOTE, _WISH = "retried", "wish"


def note(place: Path, cause: str) -> None:
    """For the parent, which this process is: the pool in this directory is down, and is tried again."""
    with suppress(OSError):  # no room, or a directory that is not ours: then it is in the log alone
        place.mkdir(mode=0o700, exist_ok=True)
        replace_text(place / _NOTE, f"{BoardName.own()}\n{cause}")


def forget(place: Path) -> None:
    """For the parent: it is not down any more, or not tried again."""
    for name in (_NOTE, _WISH):
        with suppress(OSError):
            (place / name).unlink()


def cause_of(place: Path) -> str | None:
    """Why the pool in this directory is down, if its parent lives and tries it again."""
    name, _, cause = text_in(place / _NOTE).partition("\n")
    return cause if name and BoardName.parsed(Path(name)).has_master else None


def ask(place: Path, wish: str) -> None:
    """Ask the parent of a pool that is down for ``STOP``, ``RETRY``, ``PAUSE`` or ``CONTINUE``. Raises ``OSError``."""
    replace_text(place / _WISH, wish)


def asked(place: Path) -> str:
    """For the parent: what was asked since the last look; empty if nothing."""
    if wish := text_in(place / _WISH):
        with suppress(OSError):
            (place / _WISH).unlink()
    return wish
