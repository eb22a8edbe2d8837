"""Looks after flows: what is due by time, what a process has left over, and metrics."""

from __future__ import annotations

import math
import time
from contextlib import suppress

from queuepool.board.fields import Header
from queuepool.errors import StoreDenied, StoreDown, TableMissing
from queuepool.settlement.flows import event_of
from queuepool.settlement.settler import Settler
from queuepool.steward.loop import Chore
from queuepool.steward.measure import MeasuringPace, PoolMeters
from queuepool.stores.flows import Flows

#: seconds for which members that began or ended are called recent; between looks while some are, and afterwards
_LATELY, _PERIOD, _RARELY = 60.0, 1.0, 60.0
#: seconds between looks of a pool that has run no member: one whose host was lost may have left something over
_SELDOM = 600.0


class LookAtFlows:
    """Does what is due for flows, and emits how those have ended. A pool that runs none of them seldom looks."""

    def __init__(self, flows: Flows, header: Header, settler: Settler) -> None:
        self._flows = flows
        self._header = header
        self._settler = settler
        self._looked = -math.inf

    def run(self, now: float) -> float:
        """As of every chore."""
        if now >= self._looked + self._pause(now):
            self._looked, before = now, self._looked  # also if it is refused: another at once would be, too
            try:
                self._look()
            except StoreDown:
                self._looked = before
                raise
            self._settler.emit_noted()
            self._note_others(now)
        return _PERIOD

    def _note_others(self, now: float) -> None:
        """So that gauges and alerts follow flows that were under way before the pool was started."""
        with suppress(StoreDenied):  # a database from before there were flows, or a user without this command
            if not self._header.flows_at and self._flows.under_way(1):
                self._header.flows_at = now

    def _pause(self, now: float) -> float:
        """Seconds between two looks."""
        if not self._header.flows_at:
            return _SELDOM
        return _PERIOD if now < self._header.flows_at + _LATELY else _RARELY

    def _look(self) -> None:
        try:
            for end in self._flows.look():
                self._settler.note(event_of(end))
        except StoreDenied as error:
            # A table is missing in a database from before there were flows.
            if self._header.flows_at and not isinstance(error, TableMissing):
                raise


class OnceThereAreFlows:
    """Runs a chore once the pool knows of flows, and the thread that it has: other pools do without."""

    def __init__(self, chore: Chore, header: Header) -> None:
        self._chore = chore
        self._header = header

    def run(self, now: float) -> float:
        """As of every chore."""
        return self._chore.run(now) if self._header.flows_at else _PERIOD


class MeasureFlows:
    """Measures how many flows are under way, and since when. A pool without flows never asks its store.

    It has a thread and connections of its own, as the members of ten thousand flows take long to count.
    """

    def __init__(self, flows: Flows, header: Header, meters: PoolMeters) -> None:
        self._flows = flows
        self._header = header
        self._meters = meters
        self._pace = MeasuringPace()

    def run(self, now: float) -> float:
        """As of every chore."""
        if self._header.flows_at:
            self._pace.run(now, lambda: self._meters.note_flows(self._flows.under_way(), time.time()))
        return _PERIOD
