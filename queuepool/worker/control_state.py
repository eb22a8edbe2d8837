"""What a worker is told from outside: restart, paused queues, maintenance.

In a pool the steward reads the control keys and writes them on the board, so that no worker spends a round trip on
them. A lone worker reads them itself, at most once a second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from queuepool.board.board import Header
from queuepool.errors import StoreDown
from queuepool.events.listeners import Listeners
from queuepool.steward.side_stores import SideStores
from queuepool.stores.contract import Control
from queuepool.stores.control import PERIOD, ControlReader


class ControlState(Protocol):
    """Asked in every round, after a ``look``."""

    def are_known(self) -> bool:
        """Whether anybody has read the control keys yet: before that, nobody knows whether work is allowed."""

    def look(self) -> None:
        """Read them anew. Raises ``StoreDown``."""

    def must_leave(self) -> bool:
        """A restart was broadcast, and nobody but this worker will carry it out."""

    def is_replaced(self) -> bool:
        """Whether a worker that is told to leave leaves for a newer generation."""

    def is_down(self) -> bool:
        """Maintenance mode."""

    def paused(self) -> frozenset[str]:
        """Queues not to be served."""

    def mourned(self) -> int:
        """How many jobs have failed with their worker so far."""


class BoardControlState:
    """From the board; restarts are the master's to carry out."""

    def __init__(self, header: Header, generation: int) -> None:
        self._header = header
        self._generation = generation
        self._read = -1
        self._down = False
        self._paused: frozenset[str] = frozenset()
        self._mourned = 0

    def are_known(self) -> bool:
        return bool(self._header.restart_known)

    def look(self) -> None:
        header = self._header
        if header.orders == self._read and header.mourned == self._mourned:
            return
        self._read = header.orders
        self._down = bool(header.down)
        self._paused = frozenset(filter(None, header.paused.split(",")))
        self._mourned = header.mourned

    def must_leave(self) -> bool:
        return False

    def is_replaced(self) -> bool:
        return self._header.generation > self._generation

    def is_down(self) -> bool:
        return self._down

    def paused(self) -> frozenset[str]:
        return self._paused

    def mourned(self) -> int:
        return self._mourned


class StoreControlState:
    """From the store, at most once a second. What a control store that is away said last holds until it is back."""

    def __init__(self, control: ControlReader, queues: Sequence[str], listeners: Listeners) -> None:
        self._reader = control
        self._queues = queues
        self._sides = SideStores(listeners)
        self._control = Control()
        self._first: Control | None = None
        self._again = 0.0

    def are_known(self) -> bool:
        return True  # every round begins with a look

    def look(self) -> None:
        now = time.monotonic()
        if now >= self._again:
            try:
                self._control = self._reader.read(self._queues)
            except StoreDown as error:
                if not error.store:
                    raise
                self._sides.lost(error)
            else:
                self._sides.answered("control store")
                self._first = self._first or self._control
            self._again = now + PERIOD

    def must_leave(self) -> bool:
        restart = self._control.restart
        # A key that is gone (evicted, flushed) is no restart; Laravel's worker would leave.
        return restart is not None and self._first is not None and restart != self._first.restart

    def is_replaced(self) -> bool:
        return False  # there is no other

    def is_down(self) -> bool:
        return self._control.down

    def paused(self) -> frozenset[str]:
        return self._control.paused

    def mourned(self) -> int:
        return 0
