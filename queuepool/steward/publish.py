"""Publish the pool's status in the store, where any host can read it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any, Protocol

from queuepool.board.board import Board
from queuepool.board.status import overview

#: seconds between notices; the first interval is short, as workers are still starting
_PERIOD, _FIRST = 5.0, 1.0


class Publisher(Protocol):
    """The part of a store that keeps the pools' notices."""

    def publish(self, pool: str, facts: Mapping[str, Any]) -> None: ...

    def withdraw(self, pool: str) -> None: ...


class Publish:
    """Publishes what ``status`` shows here, for ``status --all`` on other hosts."""

    def __init__(self, name: str, board: Board, store: Publisher) -> None:
        self._name = name
        self._board = board
        self._store = store
        self._host = socket.gethostname()
        self._pause = _FIRST
        self._key = f"{self._host}:{name}:{os.getppid()}"

    def run(self, now: float) -> float:
        facts = overview(self._name, self._board)
        self._store.publish(self._key, {**facts, "host": self._host})
        pause, self._pause = self._pause, _PERIOD
        return pause

    def withdraw(self) -> None:
        """Remove the notice: the pool has ended. Raises ``StoreError``."""
        self._store.withdraw(self._key)
