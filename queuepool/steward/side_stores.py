"""The stores beside the one with the jobs: the failed store and the control store. While one is away the jobs go on."""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

from queuepool.board.slot import Header
from queuepool.errors import StoreDown
from queuepool.events import Event, FailureUnrecorded, SideStoreLost, SideStoreRegained, StoreStillLost
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Reasons
from queuepool.stores.split_failed import Forwarder

#: seconds between two looks whether failures wait, or a store is back
PERIOD = 1.0
#: where waiting for a silent store took time, so many times that time are left to the jobs
_RESTS = 10.0


class Teller(Protocol):
    """Who passes events on to listeners."""

    def tell(self, event: Event) -> object: ...


class Told:
    """Events of another thread, until the main thread tells the listeners."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def tell(self, event: Event) -> None:
        self._events.append(event)

    def pass_on(self, listeners: Listeners) -> None:
        while self._events:
            listeners.tell(self._events.popleft())


class SideStores:
    """One process's view of them: when one goes, when the reason changes, when it is back. ``header``: shows it."""

    def __init__(self, teller: Teller, header: Header | None = None) -> None:
        self._teller = teller
        self._header = header
        #: which are away, and since when (monotonic)
        self._lost: dict[str, float] = {}
        self._reasons: dict[str, Reasons] = {}

    def lost(self, error: StoreDown) -> None:
        if error.store not in self._lost:
            self._lost[error.store] = time.monotonic()
            self._reasons[error.store] = Reasons(str(error))
            self._show(error.store, time.time())
            self._teller.tell(SideStoreLost(error.store, str(error)))
        elif self._reasons[error.store].has_changed(str(error)):
            self._teller.tell(StoreStillLost(error.store, str(error)))

    def answered(self, store: str) -> None:
        if store in self._lost:
            self._show(store, 0.0)
            self._teller.tell(SideStoreRegained(store, time.monotonic() - self._lost.pop(store)))

    def _show(self, store: str, since: float) -> None:
        if self._header:
            setattr(self._header, f"{store.replace(' ', '_')}_lost", since)


class FailureRecorder:
    """Takes failures to the failed store: the steward's, or a lone worker's, which has no steward."""

    def __init__(self, forwarder: Forwarder, teller: Teller, stores: SideStores) -> None:
        self._forwarder = forwarder
        self._teller = teller
        self._stores = stores
        self._again = 0.0
        self._refused = ""

    def run(self) -> None:
        """Once a second. Raises ``StoreDown`` of the store with the jobs."""
        began = time.monotonic()
        if began >= self._again:
            self.record()
            self._again = time.monotonic() + max(PERIOD, _RESTS * (time.monotonic() - began))

    def record(self) -> int:
        """All that wait, now; gives how many still do."""
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
                self._teller.tell(FailureUnrecorded(left, self._refused))
        return left
