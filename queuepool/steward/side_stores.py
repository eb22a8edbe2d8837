"""The failed store and the control store, when they are not in the jobs' store. Jobs go on while one is away."""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

from queuepool.board.header import Header
from queuepool.errors import StoreDown
from queuepool.events import Event, FailureUnrecorded, SideStoreLost, SideStoreRegained, StoreStillLost
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Reasons
from queuepool.stores.split_failed import Forwarder

#: seconds between checks for waiting failures, or for a store that is back
PERIOD = 1.0
#: after waiting for a silent store, the jobs get this many times that time
_PAUSES = 10.0


class Emitter(Protocol):
    """Emits events to listeners."""

    def emit(self, event: Event) -> object: ...


class EventQueue:
    """Keeps another thread's events until the main thread emits them."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def emit(self, event: Event) -> None:
        self._events.append(event)

    def emit_to(self, listeners: Listeners) -> None:
        """Emit what was kept; called by the main thread."""
        while self._events:
            listeners.emit(self._events.popleft())


class SideStores:
    """One process's view of them: emits an event when one goes away, when the reason changes, and when it is back.

    ``header``: where it shows them on the board.
    """

    def __init__(self, emitter: Emitter, header: Header | None = None) -> None:
        self._emitter = emitter
        self._header = header
        #: the stores that are away, and since when (monotonic)
        self._lost: dict[str, float] = {}
        self._reasons: dict[str, Reasons] = {}

    def lost(self, error: StoreDown) -> None:
        """The store that ``error.store`` names is away."""
        if error.store not in self._lost:
            self._lost[error.store] = time.monotonic()
            self._reasons[error.store] = Reasons(str(error))
            self._show(error.store, time.time())
            self._emitter.emit(SideStoreLost(error.store, str(error)))
        elif self._reasons[error.store].has_changed(str(error)):
            self._emitter.emit(StoreStillLost(error.store, str(error)))

    def answered(self, store: str) -> None:
        """This store has answered."""
        if store in self._lost:
            self._show(store, 0.0)
            self._emitter.emit(SideStoreRegained(store, time.monotonic() - self._lost.pop(store)))

    def _show(self, store: str, since: float) -> None:
        if self._header:
            setattr(self._header, f"{store.replace(' ', '_')}_lost", since)


class FailureRecorder:
    """Moves failures to the failed store, for the steward or for a lone worker, which has no steward."""

    def __init__(self, forwarder: Forwarder, emitter: Emitter, stores: SideStores) -> None:
        self._forwarder = forwarder
        self._emitter = emitter
        self._stores = stores
        self._next_run = 0.0
        self._refused = ""

    def run(self) -> None:
        """``record``, at most once a second."""
        began = time.monotonic()
        if began >= self._next_run:
            self.record()
            self._next_run = time.monotonic() + max(PERIOD, _PAUSES * (time.monotonic() - began))

    def record(self) -> int:
        """Record all waiting failures now; returns how many still wait. Raises ``StoreDown`` of the jobs' store."""
        try:
            left = self._forwarder.forward()
        except StoreDown as error:
            if not error.store:
                raise
            self._stores.lost(error)
            return self._forwarder.count()
        self._stores.answered("failed store")
        if self._forwarder.problem != self._refused:
            self._refused = self._forwarder.problem
            if self._refused:
                self._emitter.emit(FailureUnrecorded(left, self._refused))
        return left
