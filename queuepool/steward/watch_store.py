"""Write on the board what all workers must know of the store: the control keys, and whether it has room for jobs."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence

from queuepool.board.board import Header
from queuepool.board.paused_queues import packed, paused_in
from queuepool.board.pauses import MAINTENANCE, Pauses
from queuepool.board.record import as_count
from queuepool.errors import StoreDown, StoreFull
from queuepool.events import MaintenanceChanged, PoolContinued, PoolPaused, PoolRestarting
from queuepool.steward.side_stores import Emitter, SideStores
from queuepool.stores.contract import Control, QueueStore
from queuepool.stores.control import PERIOD, ControlKeys

#: seconds after which work begins although the control store has never answered
CONTROL_TIMEOUT = 10.0
#: seconds between checks for room, each one round trip
_ROOM_PERIOD = 10.0
_log = logging.getLogger("queuepool")


class WatchControl:
    """Reads the control keys, by one command a second for the whole pool. Work begins even without their store."""

    def __init__(
        self,
        header: Header,
        control: ControlKeys,
        listeners: Emitter,
        queues: Sequence[str],
        side_stores: SideStores,
        pauses: Pauses,
    ) -> None:
        self._header = header
        self._control = control
        self._listeners = listeners
        self._side_stores = side_stores
        self._pauses = pauses
        self._queues = queues
        self._schedules: Sequence[str] = ()
        #: what was read last, for the chore of the schedules; and the schedules it covers
        self.last = Control()
        self._known: Sequence[str] | None = None
        #: when the control store first failed to answer (monotonic)
        self._silent_since = 0.0
        self._stamp = ""

    def watch_schedules(self, names: Sequence[str]) -> None:
        """From now on, read the pauses of these schedules too."""
        self._schedules = names

    @property
    def knows_schedules(self) -> bool:
        """Whether ``last`` has the pauses of these schedules."""
        return self._known is self._schedules

    def run(self, now: float) -> float:
        try:
            schedules = self._schedules
            keys = self._control.read(self._queues, schedules)
        except StoreDown as error:
            if error.store:
                self._begin_without_control(now)
            raise
        self._side_stores.answered("control store")
        self.last, self._known = keys, schedules
        self._pause(keys.paused)
        self._note_pauses(keys)
        if bool(self._header.down) != keys.down:
            self._header.down = keys.down
            self._header.note_control_change()
            self._listeners.emit(MaintenanceChanged(keys.down))
        self._restart(keys.restart)  # last: it tells the workers that the control state is known
        return PERIOD

    def _note_pauses(self, keys: Control) -> None:
        """Since when, and by whom; maintenance mode is a pause of everything."""
        down = {MAINTENANCE} if keys.down else frozenset[str]()
        said = {**keys.pauses, **({MAINTENANCE: keys.down_by} if keys.down_by else {})}
        self._pauses.note(keys.paused | down, said, time.time())

    def _begin_without_control(self, now: float) -> None:
        self._silent_since = self._silent_since or now
        if now - self._silent_since < CONTROL_TIMEOUT:
            return
        if not self.knows_schedules:
            self.last, self._known = Control(down=bool(self._header.down)), self._schedules
        if not self._header.restart_known:
            _log.warning(
                "no answer from the control store for %gs: work begins as if nothing were paused", CONTROL_TIMEOUT
            )
            self._header.restart_known = 1

    def _restart(self, stamp: str | None) -> None:
        header = self._header
        known = hashlib.sha256((stamp or "").encode()).hexdigest()  # a key of any length fits the field
        if not self._stamp:
            self._stamp = (header.restart_known and header.restart_stamp) or known
        # A key that is gone (evicted, flushed) is not a restart, though Laravel's workers would exit.
        if stamp is not None and known != self._stamp:
            self._stamp = known
            header.restarts = as_count(header.restarts) + 1
            self._listeners.emit(PoolRestarting())
        # Kept for the next steward; written every time, since a job may have overwritten it.
        header.restart_stamp, header.restart_known = self._stamp, 1

    def _pause(self, paused: frozenset[str]) -> None:
        before, now = self._header.paused, packed(paused, self._queues)
        if now == before:  # as packed: without room for all names, more queues may be unpacked than are paused
            return
        old = frozenset(paused_in(before, lambda: self._queues))
        self._header.paused = now
        self._header.note_control_change()
        if paused - old:
            self._listeners.emit(PoolPaused(tuple(sorted(paused - old))))
        if old - paused:
            self._listeners.emit(PoolContinued(tuple(sorted(old - paused))))


class WatchRoom:
    """Writes on the board since when the store has had no room: a full Redis refuses pushes, and only those.

    The loop notices a full database, as any write to it fails.
    """

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
        return _ROOM_PERIOD

    def _lost(self, problem: str) -> None:
        if not self._header.store_full:
            _log.error("the store is full: it refuses new jobs, but still serves those it holds: %s", problem)
            self._header.store_full = time.time()

    def _regained(self) -> None:
        if since := self._header.store_full:
            _log.info("the store has room again after %.0fs", max(time.time() - since, 0.0))
            self._header.store_full = 0.0
