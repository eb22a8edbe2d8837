"""A coroutine that says on the board, at each of its steps, which lane has the processor.

If the process dies, or its loop stands still, in the middle of a step, that word names the job to blame.
"""

from __future__ import annotations

from collections.abc import Coroutine
from time import monotonic
from types import TracebackType
from typing import Any

from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE
from queuepool.board.lanes import Lanes
from queuepool.unix import at_fork

#: whether this process is a copy of a worker, which a job has forked
_is_copy = False


def end_copies() -> None:
    """By the worker: a copy of it that a job forks ends with that step, before it goes on with its neighbours."""
    at_fork.watch(_nothing, _note_copy)


class Stepped(Coroutine[Any, Any, Any]):
    """The same coroutine for its loop and for its tracebacks; ``lane`` is one of the slot's ``lanes``."""

    __slots__ = ("_coroutine", "_mark", "_reals", "_send", "_words")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], lanes: Lanes, lane: int) -> None:
        self._coroutine = coroutine
        self._send = coroutine.send
        self._words, self._reals = lanes.wholes, lanes.reals
        self._mark = lane + 1

    def moves(self, lane: int) -> None:
        """From its next step on it is in this lane."""
        self._mark = lane + 1

    def send(self, value: Any) -> Any:
        words = self._words
        # A step may be within another one: an eager task begins at once, and some libraries nest loops.
        if before := words[ON_CPU]:
            since = self._reals[ON_CPU_SINCE]
        self._reals[ON_CPU_SINCE] = monotonic()
        words[ON_CPU] = self._mark
        try:
            return self._send(value)
        except BaseException as error:
            _end(error)
            raise
        finally:
            if _is_copy:
                at_fork.leave_if_copy(0)
            words[ON_CPU] = before
            if before:  # only now: the inner step must not look as old as the outer one
                self._reals[ON_CPU_SINCE] = since

    def throw(
        self, kind: Any, value: BaseException | object | None = None, traceback: TracebackType | None = None
    ) -> Any:
        # Not by ``send``'s own lines, which would be one frame more.
        words = self._words
        if before := words[ON_CPU]:
            since = self._reals[ON_CPU_SINCE]
        self._reals[ON_CPU_SINCE] = monotonic()
        words[ON_CPU] = self._mark
        try:
            # More than one argument is deprecated.
            return self._coroutine.throw(kind) if value is None else self._coroutine.throw(kind, value, traceback)
        except BaseException as error:
            _end(error)
            raise
        finally:
            if _is_copy:
                at_fork.leave_if_copy(0)
            words[ON_CPU] = before
            if before:
                self._reals[ON_CPU_SINCE] = since

    def close(self) -> None:
        words = self._words
        if before := words[ON_CPU]:
            since = self._reals[ON_CPU_SINCE]
        self._reals[ON_CPU_SINCE] = monotonic()
        words[ON_CPU] = self._mark
        try:
            self._coroutine.close()
        finally:
            if _is_copy:
                at_fork.leave_if_copy(0)
            words[ON_CPU] = before
            if before:
                self._reals[ON_CPU_SINCE] = since

    def __await__(self) -> Any:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        """What tasks show of their coroutine: its name, frame and code."""
        return getattr(self._coroutine, name)


def _end(error: BaseException) -> None:
    """The coroutine ends: take the wrapper's frame from its traceback, whose first is then the user's."""
    if _is_copy:
        at_fork.leave_if_copy(0, None if isinstance(error, StopIteration) else error)
    if error.__traceback__:
        error.__traceback__ = error.__traceback__.tb_next


def _nothing() -> None:
    pass


def _note_copy() -> None:
    global _is_copy
    _is_copy = True
