"""What the steward and the command line request of the master through the board; each request counts once."""

from __future__ import annotations

from dataclasses import dataclass

from queuepool.board.header import Header

#: seconds after which the steward's wish no longer counts: it is gone, or does not reach the store
WISH_LASTS = 30.0
#: an order in one word, which is written at once: bits of each number, and the kinds from here on. A plain number of
#: workers is what older versions write and read
_NUMBER, _KIND = 12, 56
_MOST, _LONGEST = (1 << _NUMBER) - 1, (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Pin:
    """So many workers, whatever there is to do; for so many ``seconds``, 0 = until another order."""

    workers: int
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Unpin:
    """As many as the jobs need or, where the pool does not scale, as many as the configuration says."""


@dataclass(frozen=True, slots=True)
class Between:
    """As many as the jobs need, but no fewer and no more than these."""

    fewest: int
    most: int


ScaleOrder = Pin | Unpin | Between


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
    """The order that a number on the board means; ``None`` if it means none."""
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
        """The number of workers that is ordered; ``None`` without an order."""
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
