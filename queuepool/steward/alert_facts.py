"""The facts that alerts are about, from the meters, the board and the notices of other pools."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from queuepool.board.board import Board, Role, State
from queuepool.board.counts import PoolCounts
from queuepool.board.running_jobs import words_of
from queuepool.steward.alert_rules import MEASURED, Facts
from queuepool.steward.alert_window import AlertWindow

#: seconds after which a measurement says nothing of the present
_STALE = 300.0
#: jobs of a lost pool that an alert names
_MOST_NAMED = 3
#: the stores that may be away, by the header's field
_STORES = {"store": "store", "failed store": "failed_store", "control store": "control_store"}


class Lost(NamedTuple):
    """For how many seconds each other pool (``HOST:POOL``) has published nothing, and what it ran then."""

    silent: Mapping[str, float]
    ran: Mapping[str, str]


class AlertFacts:
    """One pool's facts at each look; ``read`` reads its meters."""

    def __init__(self, pool: str, board: Board, read: Callable[[Board], PoolCounts]) -> None:
        self._pool = pool
        self._board = board
        self._read = read
        self._window = AlertWindow()

    def look(self, lost: Lost | None, unserved: Mapping[str, float] | None) -> tuple[Facts, frozenset[str]]:
        """The facts, and the kinds of which nothing is known: ``None`` for other pools, and for queues of none."""
        counts, header, now = self._read(self._board), self._board.header, time.time()
        recent = self._window.add(time.monotonic(), counts)
        since_of = {name: getattr(header, f"{field}_lost") for name, field in _STORES.items()}
        away = {name: max(now - since, 0.0) for name, since in since_of.items() if since}
        is_served = header.state != State.PAUSED and not header.down
        unknown = MEASURED if header.store_lost or _is_stale(counts, now) else frozenset[str]()
        unknown |= {kind for kind, found in (("lost", lost), ("unserved", unserved)) if found is None}
        silent, ran = lost or Lost({}, {})
        running = _running(self._board, now)
        return Facts(self._pool, counts, recent, running, away, silent, ran, unserved or {}, is_served), unknown


def _is_stale(counts: PoolCounts, now: float) -> bool:
    return max((queue.measured_at for queue in counts.queues.values()), default=0.0) < now - _STALE


def _running(board: Board, now: float) -> dict[str, float]:
    """For how long the longest running job of each name has run."""
    found: dict[str, float] = {}
    for slot in board.of(Role.WORKER):
        if slot.state == State.BUSY and not slot.dead and slot.since:
            found[slot.job] = max(now - slot.since, found.get(slot.job, 0.0))
    return found


def lost_in(notices: list[dict[str, Any]], own: str) -> Lost:
    """Of the pools of these notices, but for our own."""
    silent = silence_of(notices, own)
    last = {f"{one['host']}:{one['pool']}": one for one in sorted(notices, key=lambda one: float(one["at"]))}
    return Lost(silent, {name: words_of(last[name], _MOST_NAMED) for name in silent})


def silence_of(notices: list[dict[str, Any]], own: str) -> dict[str, float]:
    """For how many seconds each other pool (``HOST:POOL``) has published nothing, by the newest notice of all.

    A pool that was restarted has several notices.
    """
    last: dict[str, float] = {}
    for notice in notices:
        name = f"{notice['host']}:{notice['pool']}"
        last[name] = max(notice["at"], last.get(name, 0.0))
    newest = max(last.values(), default=0.0)
    return {name: newest - at for name, at in last.items() if name != own}
