"""See whether the store has room for new jobs: a full Redis refuses those who push, and nobody else."""

from __future__ import annotations

import logging
import time

from queuepool.board.header import Header
from queuepool.errors import StoreFull
from queuepool.stores.contract import QueueStore

#: seconds between two looks, each one round trip
_PERIOD = 10.0
_log = logging.getLogger("queuepool")


class WatchRoom:
    """Writes on the board since when it has none. A database that is full is noticed by the loop, whatever writes."""

    def __init__(self, header: Header, store: QueueStore) -> None:
        self._header = header
        self._store = store

    def run(self, now: float) -> float:
        try:
            self._store.ask_for_room()
        except StoreFull as error:
            self._lost(str(error))
        else:
            self._regained()
        return _PERIOD

    def _lost(self, problem: str) -> None:
        if not self._header.store_full:
            _log.error("the store is full: it refuses new jobs, and goes on with those that it holds: %s", problem)
            self._header.store_full = time.time()

    def _regained(self) -> None:
        if since := self._header.store_full:
            _log.info("the store has room again after %.0fs", max(time.time() - since, 0.0))
            self._header.store_full = 0.0
