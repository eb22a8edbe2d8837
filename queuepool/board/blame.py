"""What the stewards of a pool have died of, so that the next one leaves it aside.

A steward writes down what it is about to do, and strikes it out when that is done. So what stands there when a steward
begins is what the one before it died of: by a traceback, a crash, or a hang that the master ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from queuepool.board.slot import Header
from queuepool.errors import StoreError

#: what a death counts: by its own fault, or killed from outside, which may mean nothing, or that memory ran out
_OWN, _KILLED = 3, 1
#: two deaths of its own
_ENOUGH = 2 * _OWN
#: things remembered, the newest first
_MOST = 4


class Blame:
    """As one steward of the pool finds it."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._counts = _parsed(header.died_of)
        if what := header.doing:
            self._counts = {
                what: self._counts.pop(what, 0) + (_KILLED if header.steward_killed else _OWN),
                **self._counts,
            }
            self._write()
        header.doing = ""

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """A death in here is blamed on ``what``. To end in order clears it; an answer of the store is no death."""
        outer, self._header.doing = self._header.doing, what
        try:
            yield
        except StoreError:
            self._header.doing = outer
            raise
        self._header.doing = outer
        if self._counts.pop(what, 0):
            self._write()

    def is_deadly(self, what: str) -> bool:
        """Whether so many have died of it that it is to be left aside."""
        return self._counts.get(what, 0) >= _ENOUGH

    def _write(self) -> None:
        self._header.died_of = "\n".join(f"{count} {what}" for what, count in list(self._counts.items())[:_MOST])


def _parsed(text: str) -> dict[str, int]:
    counts = {}
    for line in text.splitlines():
        count, _, what = line.partition(" ")
        with suppress(ValueError):  # cut, or not ours
            counts[what] = int(count)
    return counts
