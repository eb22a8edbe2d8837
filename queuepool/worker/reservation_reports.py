"""What a worker reports from a reserve's reply, besides the jobs."""

from __future__ import annotations

from queuepool.events import JobQuarantined, LeaseLost, StoreRefused
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import decode
from queuepool.settlement.facts import facts_of
from queuepool.settlement.outage import Outage
from queuepool.stores.contract import Reservation


class Reports:
    """One worker's reports."""

    def __init__(self, listeners: Listeners, outage: Outage) -> None:
        self._listeners = listeners
        self._outage = outage
        self._problems: set[tuple[str, str]] = set()

    @property
    def has_problems(self) -> bool:
        """Whether the last reply named a queue that could not be served."""
        return bool(self._problems)

    def emit(self, reservation: Reservation, *, unsure: bool) -> None:
        """Emit what the reply reports. ``unsure``: others may have deleted done jobs, so no lost lease is reported."""
        self._outage.regained()
        for lease in reservation.refused if not unsure else ():
            self._listeners.emit(LeaseLost(facts_of(decode(lease.receipt, lease.attempts), lease.queue)))
        for queue, reason in reservation.quarantined:
            self._listeners.emit(JobQuarantined(queue, reason))
        self.refused(set(reservation.problems))

    def refused(self, problems: set[tuple[str, str]]) -> None:
        """Emit ``(queue, message of the server)`` pairs, only new ones: a broken key stays broken for long."""
        for problem in problems - self._problems:
            self._listeners.emit(StoreRefused(*problem))
        self._problems = problems
