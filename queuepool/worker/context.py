"""A worker's settings and collaborators, in a pool or alone, and the control state that it obeys.

That state is restart, paused queues and maintenance. In a pool the steward reads the control keys and writes their
state on the board, so that no worker spends a round trip on them. A lone worker reads them itself, at most once a
second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from queuepool.board.board import Header
from queuepool.board.paused_queues import paused_in
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDown
from queuepool.events.listeners import Listeners
from queuepool.jobs.registry import Registry
from queuepool.settlement.deferred_hooks import DeferredHook
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.steward.side_stores import SideStores
from queuepool.stores.contract import Batches, Control, QueueStore
from queuepool.stores.control import PERIOD, ControlKeys
from queuepool.unix.signals import WorkerSignals
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
    #: the next hook of a job that failed when its worker died
    take_deferred_hook: Callable[[], DeferredHook | None]
    #: called in each round: does the steward's work if there is no steward
    run_chores: Callable[[], object]
    #: whether there is no steward
    alone: bool
    #: the pid of the process that the worker must not outlive
    parent: int = field(default_factory=os.getppid)

    def is_draining(self) -> bool:
        """Whether this worker takes no more jobs, because it is leaving or may not work for now. Running jobs ask this.

        A newer generation alone is not a reason: until its replacement is ready, the worker takes other jobs.
        """
        is_to_leave = self.signals.stop or os.getppid() != self.parent
        return is_to_leave or self.signals.paused or self._is_closed()

    def _is_closed(self) -> bool:
        state = self.control_state
        state.glance()
        return (state.is_down() and not self.pool.force) or state.paused().issuperset(self.pool.queues)


class ControlState(Protocol):
    """Queried in every round, after a ``refresh``."""

    def are_known(self) -> bool:
        """Whether the control keys have been read yet; until then it is unknown whether work is allowed."""

    def refresh(self) -> None:
        """Read the state again. Raises ``StoreDown``."""

    def glance(self) -> None:
        """Like ``refresh``, but in the middle of a job: without a round trip, or not at all."""

    def must_leave(self) -> bool:
        """Whether a restart was broadcast that this worker must carry out itself."""

    def is_replaced(self) -> bool:
        """Whether there is a newer generation, which replaces this worker when it is stopped."""

    def is_down(self) -> bool:
        """Whether maintenance mode is on."""

    def paused(self) -> frozenset[str]:
        """The queues that must not be served."""

    def deferred_hooks(self) -> int:
        """How many jobs have failed by their worker's death so far; a change means that a deferred hook may wait."""


class _HeaderSays(NamedTuple):
    """What a header holds; ``changes`` is read first, so that a change during the read is noticed afterwards."""

    changes: int
    is_down: bool
    paused: frozenset[str]
    deferred_hooks: int


class BoardControlState:
    """The state on the board; the master carries out restarts.

    Jobs ask from their own threads: what was seen is replaced as a whole, so that none of them reads half of a change.
    """

    def __init__(self, header: Header, generation: int, queues: Sequence[str]) -> None:
        self._header = header
        self._generation = generation
        self._queues = queues
        self._seen = _HeaderSays(-1, is_down=False, paused=frozenset(), deferred_hooks=0)

    def are_known(self) -> bool:
        return bool(self._header.restart_known)

    def refresh(self) -> None:
        header, seen = self._header, self._seen
        if header.control_changes == seen.changes and header.deferred_hooks == seen.deferred_hooks:
            return
        changes, is_down = header.control_changes, bool(header.down)
        paused = frozenset(paused_in(header.paused, lambda: self._queues))
        self._seen = _HeaderSays(changes, is_down, paused, header.deferred_hooks)

    def glance(self) -> None:
        self.refresh()

    def must_leave(self) -> bool:
        return False

    def is_replaced(self) -> bool:
        return self._header.generation > self._generation

    def is_down(self) -> bool:
        return self._seen.is_down

    def paused(self) -> frozenset[str]:
        return self._seen.paused

    def deferred_hooks(self) -> int:
        return self._seen.deferred_hooks


class StoreControlState:
    """The state in the store, read at most once a second. While a control store is away, its last state holds."""

    def __init__(self, control: ControlKeys, queues: Sequence[str], listeners: Listeners) -> None:
        self._reader = control
        self._queues = queues
        self._sides = SideStores(listeners)
        self._control = Control()
        self._first: Control | None = None
        self._again = 0.0

    def are_known(self) -> bool:
        return True  # every round begins with a refresh

    def refresh(self) -> None:
        now = time.monotonic()
        if now >= self._again:
            try:
                self._control = self._reader.read(self._queues)
            except StoreDown as error:
                if not error.store:
                    raise
                self._sides.lost(error)
            else:
                self._sides.answered("control store")
                self._first = self._first or self._control
            self._again = now + PERIOD

    def glance(self) -> None:
        """Does nothing: the job may ask in any thread, and the worker's connection serves only one."""

    def must_leave(self) -> bool:
        restart = self._control.restart
        # A key that is gone (evicted, flushed) is not a restart, though Laravel's worker would exit.
        return restart is not None and self._first is not None and restart != self._first.restart

    def is_replaced(self) -> bool:
        return False  # there is no other worker

    def is_down(self) -> bool:
        return self._control.down

    def paused(self) -> frozenset[str]:
        return self._control.paused

    def deferred_hooks(self) -> int:
        return 0
