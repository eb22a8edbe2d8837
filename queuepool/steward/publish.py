"""Publish the pool's status in the store, where any host can read it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from queuepool.board.board import Board
from queuepool.board.status import overview
from queuepool.errors import StoreDenied
from queuepool.stores.contract import NOTICE_KEPT

#: seconds between notices; the first interval is short, as workers are still starting
_PERIOD, _FIRST = 5.0, 1.0


class Publisher(Protocol):
    """The part of a store that keeps the pools' notices."""

    def publish(self, pool: str, facts: Mapping[str, Any]) -> None: ...

    def withdraw(self, pool: str) -> None: ...

    def pools(self, within: float) -> list[dict[str, Any]]: ...


class Publish:
    """Publishes what ``status`` shows here, for ``status --all`` on other hosts; ``folder``: the runtime directory."""

    def __init__(self, name: str, board: Board, folder: Path, store: Publisher, queues: Sequence[str]) -> None:
        self._name = name
        self._board = board
        self._store = store
        #: two pools of one place are the same pool, before and after its master's death
        self._place = {"host": socket.gethostname(), "pool": name, "runtime_directory": str(folder)}
        self._queues = list(queues)
        self._master = os.getppid()
        self._pause = _FIRST

    def run(self, now: float) -> float:
        facts = overview(self._name, self._board).to_json()
        self._store.publish(self._key(self._master), {**facts, **self._place, "queues": self._queues})
        pause, self._pause = self._pause, _PERIOD
        if pause == _FIRST:
            self._withdraw_predecessors()
        return pause

    def withdraw(self) -> None:
        """Remove the notice: the pool has ended. Raises ``StoreError``."""
        self._store.withdraw(self._key(self._master))

    def _withdraw_predecessors(self) -> None:
        """Remove the notices that killed masters have left: their pool runs again."""
        with suppress(StoreDenied):  # a user who may not read them leaves them until they expire
            for notice in self._store.pools(NOTICE_KEPT):
                if notice.items() >= self._place.items() and notice.get("master") != self._master:
                    self._store.withdraw(self._key(notice.get("master")))

    def _key(self, master: object) -> str:
        return f"{self._place['host']}:{self._name}:{master}"
