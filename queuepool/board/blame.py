"""What the stewards of a pool have died of, so that the next one skips it.

A steward records what it is about to do and erases the record when that is done. So a record that a new steward finds
is what the one before it died of: by a traceback, a crash, or a hang that the master ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from queuepool.board.header import Header
from queuepool.errors import StoreError

#: the weight of a death: by its own fault, or killed from outside, which may mean nothing, or that memory ran out
_OWN, _KILLED = 3, 1
#: the weight from which on it is skipped: two deaths by its own fault
_DEADLY = 2 * _OWN
#: seconds for which the end of what the last steward died of proves nothing: it may go on in a thread, or wait
_PROOF = 10.0
#: how many things are remembered, the newest first
_MAX_ITEMS = 4


class Blame:
    """The record, as one steward of the pool finds and updates it."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._counts = _parsed(header.died_of)
        self._born = time.monotonic()
        #: what the last steward died of by its own fault
        self._suspect = ""
        if what := header.doing:
            self._suspect = "" if header.steward_killed else what
            self._counts = {
                what: self._counts.pop(what, 0) + (_OWN if self._suspect else _KILLED),
                **self._counts,
            }
            self._write()
        header.doing = ""

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Blame a death within the context on ``what``. A normal end clears the blame; a ``StoreError`` keeps it.

        What the last steward died of by its own fault keeps its blame until this one has lived for ten seconds.
        """
        outer, self._header.doing = self._header.doing, what
        try:
            yield
        except StoreError:
            self._header.doing = outer
            raise
        self._header.doing = outer
        is_proof = what != self._suspect or time.monotonic() - self._born > _PROOF
        if is_proof and self._counts.pop(what, 0):
            self._write()

    def is_deadly(self, what: str) -> bool:
        """Whether enough stewards have died of it for it to be skipped."""
        return self._counts.get(what, 0) >= _DEADLY

    def _write(self) -> None:
        self._header.died_of = "\n".join(f"{count} {what}" for what, count in list(self._counts.items())[:_MAX_ITEMS])


def _parsed(text: str) -> dict[str, int]:
    counts = {}
    for line in text.splitlines():
        count, _, what = line.partition(" ")
        with suppress(ValueError):  # cut off, or overwritten
            counts[what] = int(count)
    return counts
