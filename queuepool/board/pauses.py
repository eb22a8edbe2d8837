"""Since when queues, and the pool itself, are paused, and by whom, in files beside the board.

That of the queues is the steward's; that of the pool is written by whoever pauses it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuepool.board.board import Board, State
from queuepool.board.boot_report import replace_text, text_in
from queuepool.board.record import DAMAGED, as_time

#: bytes of the file, for thousands of queues
_MAX_BYTES = 4 * 1024 * 1024
#: stands for maintenance mode among the paused queues: no queue has this name
MAINTENANCE = ""
#: seconds within which a master has certainly obeyed
_SOON = 10.0


class Pause(NamedTuple):
    """When a queue was paused, in Unix seconds, and by whom: ``user@host``, empty if that is not known."""

    since: float
    by: str = ""


class Pauses:
    """Written by the steward, when something has changed."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._known = read(board)

    def note(self, paused: Collection[str], said: Mapping[str, tuple[float, str]], now: float) -> None:
        """These queues are paused; ``said``: since when and by whom. Without it, since the pause was first seen."""
        known = self._known | {queue: Pause(*pause) for queue, pause in said.items()}
        found = {queue: known.get(queue, Pause(now)) for queue in sorted(paused)}
        if found != self._known:
            with suppress(OSError):  # no room, or no directory: the next round tries again
                replace_text(_file_of(self._board), json.dumps(found))
                self._known = found


def read(board: Board) -> dict[str, Pause]:
    """The pauses by queue; none if the file cannot be read."""
    with suppress(*DAMAGED):  # a job has overwritten it
        found = json.loads(text_in(_file_of(board), _MAX_BYTES) or "{}")
        return {str(queue): Pause(as_time(since), str(by)) for queue, (since, by) in found.items()}
    return {}


def note_pool_pause(board: Board, pause: Pause) -> None:
    """By whoever pauses the whole pool, before its master is told; the record of a pause that lasts is kept."""
    if board.header.signalled == State.PAUSED and _pool_file(board).exists():
        return
    with suppress(OSError):  # no room, or another user's directory: then it is unknown
        replace_text(_pool_file(board), json.dumps(pause))


def forget_pool_pause(board: Board) -> None:
    """By whoever lets the pool continue."""
    with suppress(OSError):
        _pool_file(board).unlink(missing_ok=True)


def forget_stale_pause(board: Board) -> None:
    """Forget a pause that a signal alone has ended: the next one may be another user's."""
    if board.header.signalled != State.PAUSED and (pause := _pool_pause(board)) and pause.since < time.time() - _SOON:
        forget_pool_pause(board)


def pool_pause(board: Board) -> Pause | None:
    """Since when and by whom the whole pool is paused; ``None`` if it is not, or was paused by a signal alone."""
    return _pool_pause(board) if board.header.signalled == State.PAUSED else None


def _pool_pause(board: Board) -> Pause | None:
    with suppress(*DAMAGED):
        since, by = json.loads(text_in(_pool_file(board)) or "[]")
        return Pause(as_time(since), str(by))
    return None


def _pool_file(board: Board) -> Path:
    return board.path.with_name(f"{board.path.name}.pause")


def pause_words(since: str, by: str | None) -> str:
    """Since when, as ISO 8601, and by whom, if that is known."""
    return f" (since {since}{f' by {by}' if by else ''})"


def _file_of(board: Board) -> Path:
    return board.path.with_name(f"{board.path.name}.pauses")
