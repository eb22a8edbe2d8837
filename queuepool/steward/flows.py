"""Looks after flows, in pools that run members of some: what is due by time, and what a process has left over."""

from __future__ import annotations

from queuepool.board.fields import Header
from queuepool.errors import TableMissing
from queuepool.settlement.flows import event_of
from queuepool.settlement.settler import Settler
from queuepool.stores.flows import Flows

#: seconds for which members that began or ended are called recent; between looks while some are, and afterwards
_LATELY, _PERIOD, _RARELY = 60.0, 1.0, 60.0


class LookAtFlows:
    """Does what is due for flows, and emits how those have ended. A pool without flows never asks its store."""

    def __init__(self, flows: Flows, header: Header, settler: Settler) -> None:
        self._flows = flows
        self._header = header
        self._settler = settler
        self._looked = 0.0

    def run(self, now: float) -> float:
        """As of every chore."""
        marked = self._header.flows_at
        pause = _PERIOD if now < marked + _LATELY else _RARELY
        if marked and now >= self._looked + pause:
            self._looked = now
            self._settler.has_flows = self._look()
            self._settler.emit_noted()
        return _PERIOD

    def _look(self) -> bool:
        try:
            for end in self._flows.look():
                self._settler.note(event_of(end))
        except TableMissing:  # the database was made before there were flows
            return False
        return True
