"""Whether a worker may take jobs: paused by signal, maintenance, paused queues, or a listener's veto."""

from __future__ import annotations

from queuepool.events import Looping, WorkerContinued, WorkerPaused
from queuepool.worker.context import WorkerContext


class Gate:
    """Queried at the start of every round; emits an event when it closes, when the reason changes and when it opens."""

    def __init__(self, context: WorkerContext) -> None:
        self._queues = context.pool.queues
        self._force = context.pool.force
        self._control_state = context.control_state
        self._signals = context.signals
        self._listeners = context.listeners
        self.closed_by = ""

    def queues(self) -> tuple[str, ...]:
        """The queues to serve in this round; none if no work is allowed. Raises ``StoreDown``."""
        self._control_state.refresh()
        paused = self._control_state.paused()
        queues = tuple(queue for queue in self._queues if queue not in paused) if paused else self._queues
        why = self._why_closed(queues)
        if why != self.closed_by:
            self._listeners.emit(WorkerPaused(why) if why else WorkerContinued())
            self.closed_by = why
        return () if why else queues

    def _why_closed(self, queues: tuple[str, ...]) -> str:
        if self._signals.paused:
            return "signal"
        if self._control_state.is_down() and not self._force:
            return "maintenance"
        if not queues:
            return "all queues are paused"
        if self._listeners.wants(Looping) and not self._listeners.emit(Looping(queues)):
            return "a listener"
        return ""
