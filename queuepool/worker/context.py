"""A worker's settings and collaborators, in a pool or alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from queuepool.config.settings import PoolSettings
from queuepool.events.listeners import Listeners
from queuepool.jobs.registry import Registry
from queuepool.settlement.deferred_hooks import DeferredHook
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import Batches, QueueStore
from queuepool.unix.signals import WorkerSignals
from queuepool.worker.control_state import ControlState
from queuepool.worker.limits import Limits
from queuepool.worker.slot_writer import SlotWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What one worker is given; ``pool.worker_process`` puts it together."""

    pool: PoolSettings
    store: QueueStore
    registry: Registry
    listeners: Listeners
    signals: WorkerSignals
    slot_writer: SlotWriter
    outage: Outage
    settler: Settler
    #: opens Laravel's batches; raises ``ConfigError`` if it is not known where they are
    batches: Callable[[], Batches]
    control_state: ControlState
    limits: Limits
    #: the next hook of a job that failed with its worker
    take_deferred_hook: Callable[[], DeferredHook | None]
    #: called in each round: does the steward's work if there is no steward
    run_chores: Callable[[], object]
    #: whether there is no steward
    alone: bool
    #: the pid of the process that the worker must not outlive
    parent: int = field(default_factory=os.getppid)

    def is_draining(self) -> bool:
        """Whether this worker takes no more jobs, as it is to leave or may not work for now. Running jobs ask this.

        A newer generation alone is not a reason: until its replacement is ready, the worker takes other jobs.
        """
        is_to_leave = self.signals.stop or os.getppid() != self.parent
        return is_to_leave or self.signals.paused or self._is_closed()

    def _is_closed(self) -> bool:
        state = self.control_state
        state.glance()
        return (state.is_down() and not self.pool.force) or state.paused().issuperset(self.pool.queues)
