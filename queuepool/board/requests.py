"""What the steward and the command line request of the master through the board; each request counts once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from queuepool.board.board import Board
from queuepool.board.fields import Header
from queuepool.config.values import shown

#: seconds after which the steward's wish no longer counts: the steward is gone, or cannot reach the store
WISH_LASTS = 30.0
#: an order in one word, written by one store: bits of each number, and the kinds from here on. Older versions write and
#: read a plain number of workers
_NUMBER, _KIND = 12, 56
_MOST, _LONGEST = (1 << _NUMBER) - 1, (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Pin:
    """So many workers, whatever there is to do; for so many ``seconds``, 0 = until another order."""

    workers: int
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Unpin:
    """As many as the jobs need or, where the pool does not scale, as many as are configured."""


@dataclass(frozen=True, slots=True)
class Between:
    """As many as the jobs need, but no fewer and no more than these."""

    fewest: int
    most: int


@dataclass(frozen=True, slots=True)
class Change:
    """So many workers more than the pool is to have now, or fewer."""

    workers: int


ScaleOrder = Pin | Unpin | Between


def order_of(raw: str) -> ScaleOrder | Change:
    """The order in these words: 4, +4, -2, auto, 2..16. Raises ``ValueError``."""
    if raw == "auto":
        return Unpin()
    if bounds := re.fullmatch(r"([0-9]{1,9})\.\.([0-9]{1,9})", raw):
        fewest, most = map(int, bounds.groups())
        if not 1 <= fewest <= most:
            raise ValueError(f"{shown(raw)} is not a pair of bounds: write fewest..most, at least 1, as in 2..16")
        return Between(fewest, most)
    if re.fullmatch(r"[+-][0-9]{1,9}", raw):
        return Change(int(raw))
    if not re.fullmatch(r"[0-9]{1,9}", raw):
        raise ValueError(f"{shown(raw)} is not a whole number, nor +4, -2, auto, or bounds as 2..16")
    return Pin(int(raw))


def order_words(order: str, seconds: int) -> str:
    """An order as the journal has it: ``+4 for 3600 s``."""
    return f"{order} for {seconds} s" if seconds else order


def fitted(order: ScaleOrder | Change, board: Board, seconds: int) -> ScaleOrder:
    """The order for this pool, for so many seconds (0 = no end). Raises ``ValueError`` if it is impossible there."""
    match order:
        case Pin(workers):
            order = Pin(workers, seconds)
        case Change(change):
            workers = board.header.target
            if workers + change < 0:
                raise ValueError(f"has only {workers} worker{'' if workers == 1 else 's'}")
            order = Pin(workers + change, seconds)
        case Between() if not board.header.most:
            raise ValueError("does not scale by itself: give it max_workers or min_workers, and start it again")
    most = order.workers if isinstance(order, Pin) else order.most if isinstance(order, Between) else 0
    if most > board.max_workers:
        raise ValueError(f"was started with room for {board.max_workers} workers")
    return order


def is_carried_out(order: ScaleOrder, header: Header) -> bool:
    """Whether the master has done it."""
    if header.scale:
        return False  # it has not taken it yet
    match order:
        case Pin(workers, seconds):
            return header.target == workers and bool(not seconds or header.pinned_until)
        case Between(fewest, most):
            return not header.pinned and (header.fewest, header.most) == (fewest, most)
        case _:
            return not header.pinned


def word_of(order: ScaleOrder) -> int:
    """The order as a number for the board, above 0."""
    match order:
        case Pin(workers, seconds):
            return (workers + 1) | min(seconds, _LONGEST) << 2 * _NUMBER
        case Unpin():
            return 1 << _KIND
        case Between(fewest, most):
            return 2 << _KIND | most << _NUMBER | fewest


def order_in(word: int) -> ScaleOrder | None:
    """The order that a number on the board means; ``None`` if it stands for none."""
    kind, first, second = word >> _KIND, word & _MOST, word >> _NUMBER & _MOST
    if word <= 0 or kind > 2:
        return None
    if kind == 0:
        return Pin(first - 1, word >> 2 * _NUMBER & _LONGEST) if first else None
    return Unpin() if kind == 1 else Between(first, second)


class Requests:
    """The requests; only the master reads them."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._restarts = 0
        self._news = (0, 0)

    def order(self) -> ScaleOrder | None:
        """The number of workers ordered; ``None`` without an order."""
        word = self._header.scale
        if not word:
            return None
        self._header.scale = 0
        return order_in(word)

    def restart(self) -> bool:
        """Whether a restart was broadcast since the last call."""
        requested, before = self._header.restarts, self._restarts
        if requested == before + 1:
            self._restarts = requested
        elif requested != before:  # overwritten by a job
            self._header.restarts = before
        return requested == before + 1

    def have_news(self) -> bool:
        """Whether the workers have something new to read."""
        before, self._news = self._news, (self._header.control_changes, self._header.deferred_hooks)
        return before != self._news
