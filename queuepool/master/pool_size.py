"""How many workers the pool is to have: as configured, as an operator orders, or as its steward wishes."""

from __future__ import annotations

import logging
from math import inf

from queuepool.board.board import Board
from queuepool.board.record import as_count
from queuepool.board.requests import WISH_LASTS, Between, Pin, ScaleOrder, Unpin
from queuepool.board.states import Hold
from queuepool.config.settings import PoolSettings
from queuepool.config.values import BASELINE_MB
from queuepool.master.children import Children
from queuepool.master.respawn import Respawn
from queuepool.unix import proc
from queuepool.unix.proc import memory

#: seconds by which a wish may be later than the beginning of the pass that reads it
_TOLERANCE = 1.0
#: the most workers whose size is measured
_MEASURED = 16
_log = logging.getLogger("queuepool")


class PoolSize:
    """The number of workers, and what it follows.

    The bounds and the order are kept here, so a steward, or a job that writes over the board, can ask for any number
    without harm: no wish exceeds the bounds, or adds workers while they cannot boot or memory is short.
    """

    def __init__(self, settings: PoolSettings, board: Board, children: Children, respawn: Respawn) -> None:
        self._settings = settings
        self._board = board
        self._children = children
        self._respawn = respawn
        self._fewest, self._most = settings.bounds
        #: monotonic time at which the operator's order ends; infinity = at the next one; 0.0 = there is none
        self._pinned_until = 0.0
        self._held, self._is_shown = Hold.NOT, False
        #: how many workers there are to be now
        self.target = settings.workers

    def obey(self, order: ScaleOrder, now: float) -> None:
        """Carry out an operator's order; an impossible one, which only a job can have written, is ignored."""
        room = self._board.max_workers
        match order:
            case Pin(workers, seconds) if 0 <= workers <= room:
                self._pinned_until = now + seconds if seconds else inf
                self._held = Hold.NOT
                self._set(workers, "by order", is_timed=seconds > 0)
            case Unpin():
                self._unpin("the order was taken back")
            case Between(fewest, most) if self._settings.scales and 1 <= fewest <= most <= room:
                self._fewest, self._most = fewest, most
                self._unpin(f"by order between {fewest} and {most}")

    def add(self, change: int, now: float) -> None:
        """The order for so many workers more, or fewer."""
        self.obey(Pin(self.target + change), now)

    def follow(self, now: float) -> None:
        """In each pass: end an order whose time is over; else follow the steward's wish, as far as is allowed."""
        if self._pinned_until:
            if now >= self._pinned_until:
                self._unpin("the time of the order is over")
        elif self._settings.scales:
            wish, why = self._wish(now)
            self._set(self._allowed(wish), why)

    def show(self) -> None:
        """Write to the board what it follows. A job can overwrite that, so it is compared."""
        if not (self._settings.scales or self._pinned_until or self._is_shown):
            return
        self._is_shown = bool(self._pinned_until)
        fewest, most = (self._fewest, self._most) if self._settings.scales else (0, 0)
        until = 0.0 if self._pinned_until == inf else self._pinned_until
        header = self._board.header
        found = header.fewest, header.most, header.pinned_until, header.held, header.pinned
        facts = fewest, most, until, int(self._held), int(bool(self._pinned_until))
        if found != facts:
            header.fewest, header.most, header.pinned_until, header.held, header.pinned = facts

    @property
    def most(self) -> int:
        """The most workers there may be, including those that are leaving."""
        return self._most if self._settings.scales and not self._pinned_until else self.target

    def _unpin(self, why: str) -> None:
        is_timed, self._pinned_until = self._pinned_until not in (0.0, inf), 0.0
        number = self.target if self._settings.scales else self._settings.workers
        self._set(self._within(number), why, is_timed=is_timed)

    def _within(self, number: int) -> int:
        return min(max(number, self._fewest), self._most)

    def _wish(self, now: float) -> tuple[int, str]:
        """What the steward wishes for, and why; the present number if it has not written a wish lately."""
        header = self._board.header
        wish = as_count(header.wish)
        if not wish or not now - WISH_LASTS < header.wish_at < now + _TOLERANCE:
            self._held = Hold.SILENCE
            return self._within(self.target), "its bounds"
        self._held = Hold.NOT
        return self._within(wish), header.wish_why

    def _allowed(self, wish: int) -> int:
        """The wish; but no more workers than now while they cannot boot, or if memory would not suffice."""
        if wish <= self.target:
            return wish
        if self._respawn.cannot_boot:
            self._held = Hold.BOOT
            return self.target
        affordable = max(self._affordable(), self.target)
        if affordable < wish:
            self._held = Hold.MEMORY
        return min(wish, affordable)

    def _affordable(self) -> int:
        """How many workers there can be until only the reserve is left: those that boot have yet to take theirs."""
        if (found := memory()) is None:
            return self._most
        free = found.available - self._settings.memory_reserve.megabytes(found.total)
        ready = [child.pid for child in self._children.workers() if child.is_ready and not child.is_leaving]
        size = max(map(proc.resident_mb, ready[:_MEASURED]), default=0.0)
        return len(ready) + int(max(free, 0.0) / max(size, BASELINE_MB))

    def _set(self, target: int, why: str, *, is_timed: bool = False) -> None:
        before, self.target = self.target, target
        if target != before and (self._settings.scales or is_timed):
            _log.info("scaled from %d to %d workers: %s", before, target, why)
