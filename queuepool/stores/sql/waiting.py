"""Waiting for jobs: a table cannot block, so what is cheapest to look at is looked at.

PostgreSQL tells of pushes (NOTIFY); SQLite counts the commits of others in its file; else the queue is looked at.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable
from typing import Any, Protocol

from sqlalchemy import Connection

from queuepool.stores.sql.postgresql import is_lent
from queuepool.stores.sql.transaction import file_of

#: a look may cost this part of the time, so that a queue full of delayed jobs is looked at less often
_PART = 0.05

Look = Callable[[Connection], bool]


class Waiting(Protocol):
    """One loop's way of waiting. ``look`` says whether a job may be taken now."""

    def wait(self, connection: Connection, look: Look, timeout: float) -> None:
        """Until a job may be there or the time is over."""


class Polling:
    """Looks at the queues, less and less often, at most every ``longest`` seconds."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = longest

    def wait(self, connection: Connection, look: Look, timeout: float) -> None:
        ends, pause, before = time.monotonic() + timeout, self._shortest, 0.0
        while (left := ends - (began := time.monotonic())) > 0:
            if self._is_other(connection) or (self._has_changed(connection) and look(connection)):
                return
            cost = time.monotonic() - began
            pause = min(pause * 1.1, self._longest)
            # Both of two: the first may have had to connect, and any may have met a busy moment.
            time.sleep(min(max(pause, min(cost, before) / _PART), left))
            before = cost

    def _is_other(self, connection: Connection) -> bool:
        """Whether this is not the database any more: the next verb finds out which one is."""
        return False

    def _has_changed(self, connection: Connection) -> bool:
        return True


class CountingCommits(Polling):
    """SQLite's own count of others' commits is one system call, or none: so it may be looked at often."""

    def __init__(self) -> None:
        super().__init__(0.001, 0.012)
        self._seen = math.nan

    def wait(self, connection: Connection, look: Look, timeout: float) -> None:
        # What this connection itself commits is not counted, and others may have before it began to count.
        self._seen = math.nan
        super().wait(connection, look, timeout)

    def _is_other(self, connection: Connection) -> bool:
        file = file_of(connection)
        return file is not None and not file.is_current

    def _has_changed(self, connection: Connection) -> bool:
        driver: Any = connection.connection.driver_connection  # looked at so often that the way there counts
        (count,) = driver.execute("PRAGMA data_version").fetchone()
        has_changed = bool(count != self._seen)
        self._seen = count
        return has_changed


class Listening:
    """PostgreSQL's NOTIFY, which our producers send; those of Laravel are found when the wait is over.

    Behind a pooler nobody can listen: there the queue is looked at.
    """

    def __init__(self, instead: Waiting) -> None:
        self._instead = instead

    def wait(self, connection: Connection, look: Look, timeout: float) -> None:
        if is_lent(connection):
            self._instead.wait(connection, look, timeout)
            return
        # What is told during the look lies no longer in the socket.
        connection.info["told"] = False
        if timeout > 0 and not look(connection) and not connection.info["told"]:
            driver: Any = connection.connection.driver_connection
            select.select([driver], [], [], timeout)


def waiting_for(name: str) -> Waiting:
    """By the database's name."""
    if name == "sqlite":
        return CountingCommits()
    polling = Polling(0.002, 0.05)
    return Listening(polling) if name == "postgresql" else polling
