"""What a pool publishes of itself: its overview, who it is, its rates and its queues, in a bounded size."""

from __future__ import annotations

import platform
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from queuepool import __version__
from queuepool.board.board import Board
from queuepool.board.counts import QueueFacts
from queuepool.board.overview import PoolOverview, ProcessRow
from queuepool.board.status import overview
from queuepool.config.settings import PoolSettings
from queuepool.stores.control import instance_in

#: seconds over which rates are measured
_RATES_OVER = 60.0
#: most running jobs, and most queues, in a notice: it must stay far below what is read of one
_MOST_JOBS, _MOST_QUEUES = 500, 200


class PoolNotice:
    """Makes the notices of one pool. ``folder`` is its runtime directory; ``clock`` is the store's.

    ``measured``: the queues as they were last measured.
    """

    def __init__(
        self,
        pool: PoolSettings,
        board: Board,
        folder: Path,
        measured: Mapping[str, QueueFacts],
        clock: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._board = board
        self._measured = measured
        self._clock = clock
        #: notices from one place are of the same pool, before and after its master's death
        self._place = {"host": socket.gethostname(), "pool": pool.name, "runtime_directory": str(folder)}
        self.instance = board.name.instance
        self._rates = _Rates()

    @property
    def host(self) -> str:
        return self._place["host"]

    @property
    def key(self) -> str:
        """The key of the notice."""
        return f"{self.host}:{self._pool.name}:{self.instance}"

    def facts(self, now: float) -> dict[str, Any]:
        """The notice at ``now`` (monotonic), ready for JSON."""
        shown = overview(self._pool.name, self._board)
        processes, left_out = _few_jobs(shown.processes)
        return {
            **replace(shown, processes=processes).to_json(),
            **self._place,
            **self._identity(),
            **self._rates.at(now, shown),
            "jobs_left_out": left_out,
            "queues": list(self._pool.queues),
            "sizes": self._sizes(),
        }

    def last(self) -> dict[str, Any]:
        """What is left to say when it leaves. Raises ``StoreError``."""
        done, failed, released = self._board.totals()
        counts = {"done": done, "failed": failed, "released": released}
        return {**self._place, "id": self.instance, "at": self._clock(), **counts}

    def began(self) -> float:
        """When the pool began, by the store's clock. Raises ``StoreError``."""
        return self._clock() - (time.time() - self._board.header.since)

    def succeeds(self, notice: Mapping[str, Any]) -> bool:
        """Whether this is the notice of another instance in our place."""
        return notice.items() >= self._place.items() and key_of(notice) != self.key

    def _identity(self) -> dict[str, Any]:
        pool = self._pool
        return {
            "id": self.instance,
            "board": str(self._board.name),
            "queuepool": __version__,
            "python": platform.python_version(),
            "connection": pool.connection.name,
            "remote": pool.remote,
            "max_workers": self._board.max_workers,
        }

    def _sizes(self) -> list[dict[str, Any]]:
        """The fullest queues."""
        found = sorted(self._measured.items(), key=lambda item: (item[1].ready, item[1].oldest), reverse=True)
        return [
            {
                "queue": queue,
                "ready": facts.ready,
                "delayed": facts.delayed,
                "reserved": facts.reserved,
                "oldest": round(facts.oldest, 1),
            }
            for queue, facts in found[:_MOST_QUEUES]
        ]


class _Rates:
    """How many jobs are done and fail in a minute, by the totals of the last one."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int]] = deque()

    def at(self, now: float, shown: PoolOverview) -> dict[str, float | None]:
        """The rates; ``None`` before there are two looks."""
        self._looks.append((now, shown.done, shown.failed))
        while len(self._looks) > 2 and self._looks[1][0] <= now - _RATES_OVER:
            self._looks.popleft()
        then, done, failed = self._looks[0]
        minutes = (now - then) / 60.0
        if not minutes:
            return {"done_per_minute": None, "failed_per_minute": None}
        # Never below 0: a job may write over the board.
        rates = (max(shown.done - done, 0) / minutes, max(shown.failed - failed, 0) / minutes)
        return {"done_per_minute": round(rates[0], 1), "failed_per_minute": round(rates[1], 1)}


def key_of(notice: Mapping[str, Any]) -> str:
    """The key under which this notice is published; that of an older version has its master's pid."""
    return f"{notice['host']}:{notice['pool']}:{instance_in(notice) or notice.get('master')}"


def _few_jobs(processes: Sequence[ProcessRow]) -> tuple[list[ProcessRow], int]:
    """The processes with the first jobs of each, at most ``_MOST_JOBS`` in all; and how many jobs are left out."""
    total = sum(len(process.jobs) for process in processes)
    if total <= _MOST_JOBS:
        return list(processes), 0
    each = max(_MOST_JOBS // max(sum(bool(process.jobs) for process in processes), 1), 1)
    found = [replace(process, jobs=process.jobs[:each]) for process in processes]
    return found, total - sum(len(process.jobs) for process in found)
