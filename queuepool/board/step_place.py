"""How far a running job's cursor is, on the board: if its worker dies, its next attempt goes on behind its last row."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2s

from queuepool.board.record import Record, Text, Whole
from queuepool.payload.kept_step import CURSOR, MOST_NAME, MOST_PLACE, StepsEnd

#: bytes of the mark of a job's id
_MARK = 8
#: bytes of a place: the mark in hex, a space, the name of the cursor, a newline, and JSON
_ROOM = 2 * _MARK + 1 + len(CURSOR) + MOST_NAME + 1 + MOST_PLACE


class StepPlace(Record):
    """Written by the worker for each row, and read once the worker is dead: a text that it was writing does not count.

    ``turn`` says which of the two texts is the place; it is written last. The text says whose place it is: a thread
    that a job has left behind may write here while another job runs.
    """

    #: 0 = the job has no steps; 1 = it has some, and no cursor has moved; above: the place is in one of the texts
    turn = Whole()
    even = Text(_ROOM)
    odd = Text(_ROOM)

    def show(self, job_id: str, name: str, place: bytes) -> None:
        """By the worker: this cursor of this job is at this place; an empty name: the job has steps."""
        turn = max(self.turn, 0) + 1 if name else 1
        if name:
            turn = max(turn, 2)
            text = f"{_mark_of(job_id)} {name}\n{place.decode()}"
            if turn % 2:
                self.odd = text
            else:
                self.even = text
        self.turn = turn

    def forget(self) -> None:
        """By the worker: the next job begins."""
        self.turn = 0

    def end_of(self, job_id: str) -> StepsEnd | None:
        """What becomes of the steps of this job, whose worker has died; ``None`` if it has none.

        A text that no worker can have written counts for nothing.
        """
        turn = self.turn
        if turn <= 0:
            return None
        whose, _, text = (self.odd if turn % 2 else self.even).partition(" ")
        name, _, raw = text.rpartition("\n")
        is_place = turn > 1 and whose == _mark_of(job_id) and name.startswith(CURSOR) and len(name) > len(CURSOR)
        return StepsEnd(job_id, places=((name, raw.encode()),) if is_place and _is_json(raw) else ())


@lru_cache(1)
def _mark_of(job_id: str) -> str:
    return blake2s(job_id.encode("utf-8", "replace"), digest_size=_MARK).hexdigest()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return text.isascii()
