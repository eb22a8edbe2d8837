"""What crashed the stewards of a pool, so that the next one skips it.

A steward records what it is about to do, and erases the record when that is done. So a record that a new steward finds
names what the last one was doing when it ended: by an exception, a crash, or a hang that the master ended. Each thread
has its own record; an exception clears those of the other threads. If a crash or a hang leaves several, each gets a
smaller blame: one thread may have crashed while another only waited for a silent store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

from queuepool.board.fields import Header
from queuepool.errors import StoreError

#: what a steward's death adds to the blame of what it was doing: if only this thread was busy; if others were busy too,
#: and may be to blame; if it was killed from outside, which may mean nothing, or that memory ran out
_OWN, _SHARED, _DOUBTFUL = 3, 2, 1
#: the blame from which something is skipped: two deaths that it caused for certain, or three that it may have caused
_DEADLY = 2 * _OWN
#: seconds for which a suspect stays one even if it ends well: it may go on in a thread, or have only begun a wait
_PROOF = 10.0
#: how many things are remembered, the newest first
_MAX_ITEMS = 4


class Thread(StrEnum):
    """The threads of a steward, by their fields of the header."""

    MAIN = "doing"
    ASIDE = "doing_aside"
    ALERTS = "doing_alerts"
    FLOWS = "doing_flows"


class Blame:
    """The record, as one steward of the pool finds and updates it."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._counts = _parsed(header.died_of)
        self._born = time.monotonic()
        self._is_named = False
        found = {thread: what for thread in Thread if (what := getattr(header, thread))}
        weights = dict.fromkeys(found.values(), _weight(len(found), was_killed=bool(header.steward_killed)))
        #: what may have crashed the last steward, unless that was killed from outside
        self._suspects = {what for what, weight in weights.items() if weight != _DOUBTFUL}
        for thread in found:
            setattr(header, thread, "")  # first: the next steward would count the same death again
        if weights:
            raised = {what: self._counts.pop(what, 0) + weight for what, weight in weights.items()}
            self._counts = {**raised, **self._counts}
            self._write()

    @contextmanager
    def during(self, what: str, thread: Thread = Thread.MAIN) -> Iterator[None]:
        """Blame a death within the context on ``what``. A normal end clears the blame; a ``StoreError`` keeps it.

        What may have crashed the last steward keeps its blame until this one has lived for ten seconds.
        """
        if self._is_named:  # this steward is about to end
            yield
            return
        outer = getattr(self._header, thread)
        setattr(self._header, thread, what)
        try:
            yield
        except StoreError:
            setattr(self._header, thread, outer)
            raise
        except BaseException:
            self._name(thread)
            raise
        setattr(self._header, thread, outer)
        is_proof = what not in self._suspects or time.monotonic() - self._born > _PROOF
        if is_proof and self._counts.pop(what, 0):
            self._write()

    def is_deadly(self, what: str) -> bool:
        """Whether it has crashed enough stewards to be skipped."""
        return self._counts.get(what, 0) >= _DEADLY

    def _name(self, thread: Thread) -> None:
        """An exception in this thread is about to end the steward: clear the records of the other threads."""
        others = [] if self._is_named else [other for other in Thread if other is not thread]
        self._is_named = True
        for other in others:
            setattr(self._header, other, "")

    def _write(self) -> None:
        self._header.died_of = "\n".join(f"{count} {what}" for what, count in list(self._counts.items())[:_MAX_ITEMS])


def _weight(threads: int, *, was_killed: bool) -> int:
    """How much the work of each thread is to blame, when so many threads were busy."""
    if was_killed:
        return _DOUBTFUL
    return _SHARED if threads > 1 else _OWN


def _parsed(text: str) -> dict[str, int]:
    counts = {}
    for line in text.splitlines():
        count, _, what = line.partition(" ")
        with suppress(ValueError):  # cut off, or overwritten
            counts[what] = int(count)
    return counts
