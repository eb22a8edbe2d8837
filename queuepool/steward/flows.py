"""Looks after flows: those of dead workers at once, and now and then those that nobody has come back to."""

from __future__ import annotations

from contextlib import suppress

from queuepool.errors import StoreDenied
from queuepool.settlement.flows import event_of
from queuepool.settlement.settler import Settler
from queuepool.stores.flows import Flows

#: seconds between rounds, and between looks while nothing tells of flows: workers look as long as they run their jobs
_PERIOD, _RARELY = 1.0, 600.0


class LookAtFlows:
    """Does what is due for flows, and emits how those have ended."""

    def __init__(self, flows: Flows, settler: Settler) -> None:
        self._flows = flows
        self._settler = settler
        self._look_again = 0.0

    def run(self, now: float) -> float:
        """As of every chore. A steward that has settled a member looks at once, as its worker may have left more."""
        if self._settler.has_ended_members or now >= self._look_again:
            self._settler.has_ended_members = False
            self._look_again = now + _RARELY
            with suppress(StoreDenied):  # a database whose tables were made before there were flows has none
                for end in self._flows.look():
                    self._settler.note(event_of(end))
            self._settler.emit_noted()
        return _PERIOD
