"""Waiting for jobs: a table cannot block, so each database is watched in the cheapest way it offers.

PostgreSQL notifies of pushes (NOTIFY), SQLite counts others' commits in its file, and elsewhere the queue is polled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

from sqlalchemy import Connection

from queuepool.stores.sql.client import file_of
from queuepool.stores.sql.postgresql import is_lent
from queuepool.unix.originals import is_readable, sleep

#: the share of time that polling may take; a queue full of delayed jobs is polled less often
_POLLING_SHARE = 0.05
#: seconds between looks at a file that has not changed: a delayed job that came during the wait becomes due
_LOOK_PERIOD = 0.25

IsReady = Callable[[Connection], bool]


class Waiting(Protocol):
    """One loop's way of waiting. ``is_ready`` returns whether a job may be taken now."""

    def wait(self, connection: Connection, is_ready: IsReady, timeout: float) -> None:
        """Block until a job may be ready or ``timeout`` seconds are over."""


class Polling:
    """Polls the queues, at intervals that grow from ``shortest`` to ``longest`` seconds."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = longest

    def wait(self, connection: Connection, is_ready: IsReady, timeout: float) -> None:
        ends, pause, before = time.monotonic() + timeout, self._shortest, 0.0
        while (remaining := ends - (began := time.monotonic())) > 0:
            if self._is_other(connection) or (self._is_worth_a_query(connection) and is_ready(connection)):
                return
            cost = time.monotonic() - began
            pause = min(pause * 1.1, self._longest)
            # The lower of the last two costs: the first may include a connect, and any may fall into a busy moment.
            sleep(min(max(pause, min(cost, before) / _POLLING_SHARE), remaining))
            before = cost

    def _is_other(self, connection: Connection) -> bool:
        """Whether the database was replaced: the next verb opens the new one."""
        return False

    def _is_worth_a_query(self, connection: Connection) -> bool:
        return True


class CountingCommits(Polling):
    """Polls SQLite's count of others' commits often, as reading it takes at most one system call."""

    def __init__(self) -> None:
        super().__init__(0.001, 0.012)
        self._seen = math.nan
        self._look_at = 0.0

    def wait(self, connection: Connection, is_ready: IsReady, timeout: float) -> None:
        # The count omits this connection's own commits, and others may have committed before it started.
        self._seen = math.nan
        super().wait(connection, is_ready, timeout)

    def _is_other(self, connection: Connection) -> bool:
        file = file_of(connection)
        return file is not None and not file.is_current

    def _is_worth_a_query(self, connection: Connection) -> bool:
        driver: Any = connection.connection.driver_connection  # direct, since it is polled so often
        (count,) = driver.execute("PRAGMA data_version").fetchone()
        now = time.monotonic()
        is_worth_it = count != self._seen or now >= self._look_at
        if is_worth_it:
            self._seen, self._look_at = count, now + _LOOK_PERIOD
        return is_worth_it


class Listening:
    """PostgreSQL's NOTIFY, which our producers send; jobs from Laravel are found when the wait is over.

    Behind a pooler LISTEN does not work, so the queue is polled.
    """

    def __init__(self, instead: Waiting) -> None:
        self._instead = instead

    def wait(self, connection: Connection, is_ready: IsReady, timeout: float) -> None:
        if is_lent(connection):
            self._instead.wait(connection, is_ready, timeout)
            return
        # A notice that arrives during the query is no longer in the socket.
        connection.info["notified"] = False
        if timeout > 0 and not is_ready(connection) and not connection.info["notified"]:
            driver: Any = connection.connection.driver_connection
            is_readable(driver.fileno(), timeout)


def waiting_for(name: str) -> Waiting:
    """The way of waiting for a database, by its name."""
    if name == "sqlite":
        return CountingCommits()
    polling = Polling(0.002, 0.05)
    return Listening(polling) if name == "postgresql" else polling
