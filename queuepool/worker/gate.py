"""Whether a worker may take jobs: paused by signal, maintenance, paused queues, or a listener's veto."""

from __future__ import annotations

from queuepool.events import Looping, WorkerContinued, WorkerPaused
from queuepool.events.listeners import Listeners
from queuepool.unix.signals import WorkerSignals
from queuepool.worker.control_state import ControlState


class Gate:
    """Queried at the start of every round; emits an event when it closes, when the reason changes and when it opens."""

    def __init__(
        self, queues: tuple[str, ...], force: bool, orders: ControlState, attention: WorkerSignals, listeners: Listeners
    ) -> None:
        self._queues = queues
        self._force = force
        self._orders = orders
        self._attention = attention
        self._listeners = listeners
        self.closed_by = ""

    def queues(self) -> tuple[str, ...]:
        """The queues to serve in this round; none if no work is allowed. Raises ``StoreDown``."""
        self._orders.look()
        paused = self._orders.paused()
        queues = tuple(queue for queue in self._queues if queue not in paused) if paused else self._queues
        why = self._why_closed(queues)
        if why != self.closed_by:
            self._listeners.emit(WorkerPaused(why) if why else WorkerContinued())
            self.closed_by = why
        return () if why else queues

    def _why_closed(self, queues: tuple[str, ...]) -> str:
        if self._attention.paused:
            return "signal"
        if self._orders.is_down() and not self._force:
            return "maintenance"
        if not queues:
            return "all queues are paused"
        if self._listeners.wants(Looping) and not self._listeners.emit(Looping(queues)):
            return "a listener"
        return ""
