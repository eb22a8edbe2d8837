"""What crashed the stewards of a pool, so that the next one skips it.

A steward records what it is about to do, and erases the record when that is done. So a record that a new steward finds
is what the last one died in: by an exception, a crash, or a hang that the master ended. Each of its threads has a
record. After an exception, only the record of its thread is left. If several are found after a crash or a hang, each is
blamed, but less: one thread may have crashed while another only waited for a silent store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

from queuepool.board.fields import Header
from queuepool.errors import StoreError

#: the weight of a death: by its own fault; while another thread was busy too, which may be to blame; or killed from
#: outside, which may mean nothing, or that memory ran out
_OWN, _SHARED, _DOUBTFUL = 3, 2, 1
#: the weight from which something is skipped: two deaths by its own fault, or three that may be
_DEADLY = 2 * _OWN
#: seconds in which a suspect that ends well proves nothing: it may go on in a thread, or wait
_PROOF = 10.0
#: how many things are remembered, the newest first
_MAX_ITEMS = 4


class Thread(StrEnum):
    """The threads of a steward, by their fields of the header."""

    MAIN = "doing"
    ASIDE = "doing_aside"
    ALERTS = "doing_alerts"


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
        if weights:
            raised = {what: self._counts.pop(what, 0) + weight for what, weight in weights.items()}
            self._counts = {**raised, **self._counts}
            self._write()
        for thread in found:
            setattr(header, thread, "")

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
        """This thread has raised what ends the steward: clear the records of the others."""
        others = [] if self._is_named else [other for other in Thread if other is not thread]
        self._is_named = True
        for other in others:
            setattr(self._header, other, "")

    def _write(self) -> None:
        self._header.died_of = "\n".join(f"{count} {what}" for what, count in list(self._counts.items())[:_MAX_ITEMS])


def _weight(threads: int, *, was_killed: bool) -> int:
    """How much each thread's work is to blame, when so many threads were busy."""
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
