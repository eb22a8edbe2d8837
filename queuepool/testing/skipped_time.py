"""Time that is skipped instead of waited for: a store's clock is set forward, in this process."""

from __future__ import annotations

import time
from sqlite3 import Connection
from typing import Any

from sqlalchemy import Engine, event

from queuepool.stores.contract import QueueStore

#: what SQLite's ``julianday`` is at the beginning of Unix time, in days
_UNIX, _DAY = 2440587.5, 86400.0


class SkippedTime:
    """That of SQLite files whose clock is ours."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._stores: list[Any] = []

    def take_over(self, engine: Engine, store: QueueStore) -> None:
        """Be the clock of this file: its statements get the time by a function, which a connection may replace.

        To fix the time in the statements, as ``store.clock`` does, takes the time of thirty pushes.
        """
        self._stores.append(store)

        @event.listens_for(engine, "connect")
        def replace(connection: Connection, _: object) -> None:
            connection.create_function("julianday", -1, lambda *_: _UNIX + (time.time() + self._seconds) / _DAY)

    def skip(self, seconds: float) -> None:
        """Go on as if ``seconds`` had passed."""
        self._set(self._seconds + seconds)

    def reset(self) -> None:
        """Show the real time again."""
        if self._seconds:
            self._set(0.0)

    def _set(self, seconds: float) -> None:
        self._seconds = seconds
        for store in self._stores:
            store.clock = ""  # read it again


def skip_in(store: Any, seconds: float) -> None:
    """The clock of any store stands still, ``seconds`` later, until ``store.clock`` is set to an empty text."""
    store.clock = f"{store.now() + seconds:.6f}"
