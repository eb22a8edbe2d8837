"""Since when queues are paused, and by whom, in a file beside the board: the steward writes it, all others read it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuepool.board.board import Board
from queuepool.board.boot_report import replace_text, text_in
from queuepool.board.record import DAMAGED, as_time

#: bytes of the file, for thousands of queues
_MAX_BYTES = 4 * 1024 * 1024


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


def pause_words(since: str, by: str | None) -> str:
    """Since when, as ISO 8601, and by whom, if that is known."""
    return f" (since {since}{f' by {by}' if by else ''})"


def _file_of(board: Board) -> Path:
    return board.path.with_name(f"{board.path.name}.pauses")
