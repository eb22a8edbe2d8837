"""Show the pool on the dashboard of Laravel Horizon: its workers, its queues, and what it has done."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from contextlib import suppress

from queuepool.board.board import Board, Role, State
from queuepool.board.counts import PoolCounts, counts_of
from queuepool.config.settings import PoolSettings
from queuepool.errors import RefusesNew, StoreDenied, StoreDown, StoreError
from queuepool.steward.horizon_jobs import EndedJobs
from queuepool.stores.horizon import MASTERS, Gain, HorizonKeys, Supervised

#: seconds between rounds, which the dashboard has between its looks, too; and after one that was refused
_PERIOD, _REFUSED = 5.0, 60.0
#: most metrics that one round adds to
_MOST = 500
_log = logging.getLogger("queuepool")


class ShowInHorizon:
    """Writes what the board and the meters have, in one command; workers know nothing of it.

    What the store refuses is logged once, and hurts nothing else. A steward that dies leaves out what was done in its
    last seconds. ``is_shared``: whether the jobs are on the same server, and so away when it is.
    """

    def __init__(
        self, pool: PoolSettings, board: Board, keys: HorizonKeys, ended: EndedJobs, *, is_shared: bool
    ) -> None:
        self._pool = pool
        self._board = board
        self._keys = keys
        self._ended = ended
        self._is_shared = is_shared
        self._shown = counts_of(board)
        #: the queues with ends in the last round: their records may come a moment later than the counts
        self._queues = frozenset[str]()
        self._failed = 0
        self._problem = ""

    def run(self, now: float) -> float:
        """As of every chore. Raises ``StoreDown`` if the jobs' store is away."""
        counts = counts_of(self._board)
        try:
            self._keys.show(supervised(self._pool, self._board), *_gains(counts, self._shown))
            before, self._shown = self._shown, counts
            self._list(counts, before)
        except StoreError as error:
            if self._is_shared and _is_away(error):
                raise
            self._warn(str(error))
            return _REFUSED
        self._problem = ""
        return _PERIOD

    def leave(self) -> None:
        """The pool stops: count what is left, and take it off the dashboard."""
        with suppress(StoreError):  # else it expires by itself
            self.run(0.0)
            self._keys.remove(supervised(self._pool, self._board))

    def _list(self, now: PoolCounts, before: PoolCounts) -> None:
        """List the jobs that have ended in this round or the last one."""
        ends = {names: counts.since(before.jobs.get(names)) for names, counts in now.jobs.items()}
        queues = frozenset(queue for (queue, _), end in ends.items() if end.ended)
        failed = sum(end.failed for end in ends.values())
        if jobs := self._ended.found(queues | self._queues, failed + self._failed):
            self._keys.list_jobs(jobs, laravel_name(self._pool.connection.name))
            self._ended.note(jobs)
        self._queues, self._failed = queues, failed

    def _warn(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _log.warning("the pool is not shown in Horizon: %s", problem)


def supervised(pool: PoolSettings, board: Board) -> Supervised:
    """The pool as it is now."""
    workers = [slot for slot in board.of(Role.WORKER) if not slot.dead]
    fewest, most = pool.bounds
    options = {
        "balance": "auto" if pool.scales else "off",
        "minProcesses": fewest,
        "maxProcesses": max(most, len(workers)),
        "timeout": int(pool.timeout),
        "maxTries": pool.tries,
        "memory": int(pool.memory_hard or pool.memory.megabytes),
    }
    return Supervised(
        f"{MASTERS}{os.uname().nodename}-{pool.name}",
        board.header.master_pid,
        board.header.state == State.PAUSED,
        laravel_name(pool.connection.name),
        pool.queues,
        len(workers),
        options,
    )


def laravel_name(connection: str) -> str:
    """The name that Laravel has for a connection of ours: the same; a plain [connection] is Laravel's usual one."""
    return "redis" if connection == "default" else connection


def _is_away(error: StoreError) -> bool:
    return isinstance(error, StoreDown) and not isinstance(error, StoreDenied | RefusesNew)


def _gains(now: PoolCounts, before: PoolCounts) -> tuple[dict[str, Gain], dict[str, Gain]]:
    """What was done between the two, by job and by queue, each with the mean time of all attempts."""
    jobs, queues = defaultdict[str, Gain](_nothing), defaultdict[str, Gain](_nothing)
    for (queue, job), counts in now.jobs.items():
        end = counts.since(before.jobs.get((queue, job)))
        if end.done:
            gain = Gain(end.done, 1000.0 * end.run.total * end.done / end.ended)
            jobs[job], queues[queue] = _sum(jobs[job], gain), _sum(queues[queue], gain)
    return dict(list(jobs.items())[:_MOST]), dict(queues)


def _nothing() -> Gain:
    return Gain(0, 0.0)


def _sum(one: Gain, other: Gain) -> Gain:
    return Gain(one.jobs + other.jobs, one.took + other.took)
