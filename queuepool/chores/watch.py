"""Read the control keys and put what they say on the board."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from queuepool.board import Header
from queuepool.events import MaintenanceChanged, PoolContinued, PoolPaused, PoolRestarting
from queuepool.listeners import Listeners
from queuepool.orders import PERIOD, ControlReader
from queuepool.record import as_count


class Watch:
    """One command a second for the whole pool."""

    def __init__(self, header: Header, control: ControlReader, listeners: Listeners, queues: Sequence[str]) -> None:
        self._header = header
        self._control = control
        self._listeners = listeners
        self._queues = queues
        self._stamp = ""

    def run(self, now: float) -> float:
        said = self._control.read(self._queues)
        self._pause(said.paused)
        if bool(self._header.down) != said.down:
            self._header.down = said.down
            self._header.has_changed()
            self._listeners.tell(MaintenanceChanged(said.down))
        self._restart(said.restart)  # last: with it, workers take the orders as known
        return PERIOD

    def _restart(self, stamp: str | None) -> None:
        header = self._header
        known = hashlib.sha256((stamp or "").encode()).hexdigest()  # of any length it fits its place
        if not self._stamp:
            self._stamp = header.restart_stamp if header.restart_known else known
        # A key that is gone (evicted, flushed) is no restart; Laravel's workers would leave.
        if stamp is not None and known != self._stamp:
            self._stamp = known
            header.restarts = as_count(header.restarts) + 1
            self._listeners.tell(PoolRestarting())
        # Written down for the next steward, and each time, for a job may have written over it.
        header.restart_stamp, header.restart_known = self._stamp, 1

    def _pause(self, paused: frozenset[str]) -> None:
        before = frozenset(filter(None, self._header.paused.split(",")))
        if paused != before:
            self._header.paused = ",".join(sorted(paused))
            self._header.has_changed()
            if paused - before:
                self._listeners.tell(PoolPaused(tuple(sorted(paused - before))))
            if before - paused:
                self._listeners.tell(PoolContinued(tuple(sorted(before - paused))))
