"""Looks after flows: what is due by time, and what a process has left over."""

from __future__ import annotations

import math

from queuepool.board.fields import Header
from queuepool.errors import StoreDenied, TableMissing
from queuepool.settlement.flows import event_of
from queuepool.settlement.settler import Settler
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
            self._settler.has_flows = self._look()
            self._looked = now
            self._settler.emit_noted()
        return _PERIOD

    def _pause(self, now: float) -> float:
        """Seconds between two looks."""
        if not self._header.flows_at:
            return _SELDOM
        return _PERIOD if now < self._header.flows_at + _LATELY else _RARELY

    def _look(self) -> bool:
        try:
            for end in self._flows.look():
                self._settler.note(event_of(end))
        except TableMissing:  # the database was made before there were flows
            return False
        except StoreDenied:
            if self._header.flows_at:
                raise
        return True
