"""A worker's settings and collaborators, in a pool or alone, and what it obeys: its limits and the control state.

That state is restart, paused queues and maintenance. In a pool the steward reads the control keys and writes their
state on the board, so that no worker spends a round trip on them. A lone worker reads them itself, at most once a
second.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from queuepool.board.board import Header
from queuepool.board.paused_queues import paused_in
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDown
from queuepool.events import Looping, WorkerContinued, WorkerPaused
from queuepool.events.listeners import Listeners
from queuepool.jobs.registry import Registry
from queuepool.settlement.deferred_hooks import DeferredHook
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.steward.side_stores import SideStores
from queuepool.stores.batches import Batches
from queuepool.stores.contract import Control, QueueStore
from queuepool.stores.control import PERIOD, ControlKeys
from queuepool.unix.exit_codes import LEFT, MEMORY
from queuepool.unix.signals import WorkerSignals
from queuepool.worker.slot_writer import SlotWriter

#: the part of a limit by which it may be lower
_JITTER = 0.1


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
    #: called in each round: what a worker does of the steward's work; ``None`` = nothing, as if there is a steward
    run_chores: Callable[[], object] | None
    #: whether there is no steward
    alone: bool
    #: called by the handler of a signal: it ends calls to where the store was, if it has moved; ``None`` = it cannot
    end_stale_calls: Callable[[], object] | None = None
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


class StopReason(StrEnum):
    """Why a worker left; Laravel's names (WorkerStopReason.php, 13.x) where it has them."""

    #: by a stop signal: the pool stops or shrinks
    STOPPED = "stop_signal"
    #: the same while the store was away; the steward settles what it held
    INTERRUPTED = "interrupted"
    MEMORY = "memory"
    EMPTY = "empty"
    EMPTY_FOR = "empty_for"
    MAX_TIME = "max_time"
    MAX_JOBS = "max_jobs"
    ONCE = "once"
    RESTART = "restart_signal"
    ORPHANED = "orphaned"

    @property
    def code(self) -> int:
        return MEMORY if self is StopReason.MEMORY else LEFT

    @property
    def counted_as(self) -> str:
        """The reason under which the pool's meters count it."""
        return _COUNTED_AS.get(self, "stop")


_COUNTED_AS = {
    StopReason.MAX_JOBS: "max_jobs",
    StopReason.ONCE: "max_jobs",
    StopReason.MAX_TIME: "max_time",
    StopReason.MEMORY: "memory",
    StopReason.RESTART: "restart",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long one worker lives; 0 = no limit. ``memory`` in MB, ``until`` in monotonic seconds.

    ``stop_when_empty_for``: seconds without a job.
    """

    memory: float
    max_jobs: int
    until: float
    once: bool = False
    stop_when_empty: bool = False
    stop_when_empty_for: float = 0.0

    @classmethod
    def drawn(
        cls,
        *,
        memory: float,
        max_jobs: int,
        max_time: float,
        once: bool = False,
        stop_when_empty: bool = False,
        stop_when_empty_for: float = 0.0,
    ) -> Limits:
        """Limits with jobs and time up to a tenth lower, so that workers started together do not leave together."""
        less = 1 - random.random() * _JITTER
        return cls(
            memory=memory,
            max_jobs=max(1, round(max_jobs * less)) if max_jobs else 0,
            until=time.monotonic() + max_time * less if max_time else 0.0,
            once=once,
            stop_when_empty=stop_when_empty,
            stop_when_empty_for=stop_when_empty_for,
        )

    @property
    def is_leaving_when_empty(self) -> bool:
        return self.once or self.stop_when_empty

    def may_idle(self, idle: float) -> float:
        """Seconds that a worker without a job for ``idle`` seconds may still wait for one."""
        return max(self.stop_when_empty_for - idle, 0.0) if self.stop_when_empty_for else math.inf

    def is_last(self, jobs: int) -> bool:
        """Whether no job may follow after this many."""
        return (jobs > 0 and self.once) or 0 < self.max_jobs <= jobs

    def is_over(self, *, rss: float, now: float) -> bool:
        """Whether a job that can go on in another worker is to leave this one; the number of jobs is no reason."""
        return bool((self.memory and rss >= self.memory) or (self.until and now >= self.until))

    def reached(self, *, jobs: int, rss: float, found_none: bool, now: float, idle: float = 0.0) -> StopReason | None:
        """The first reason to leave, in Laravel's order; ``idle``: seconds since the start or the last job.

        Source: Worker.php, stopIfNecessary (13.x).
        """
        if self.memory and jobs and rss >= self.memory:  # before its first job, a successor would be as large
            return StopReason.MEMORY
        if self.stop_when_empty and found_none:
            return StopReason.EMPTY
        if found_none and not self.may_idle(idle):
            return StopReason.EMPTY_FOR
        if self.once and (jobs or found_none):
            return StopReason.ONCE
        if self.until and now >= self.until and (jobs or found_none):  # it has looked for a job at least once
            return StopReason.MAX_TIME
        if self.is_last(jobs):
            return StopReason.MAX_JOBS
        return None


class Gate:
    """Whether the worker may take jobs: paused by signal, maintenance, paused queues, or a listener's veto.

    Asked at the start of every round. Emits an event when it closes, when the reason changes and when it opens.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._queues = context.pool.queues
        self._force = context.pool.force
        self._control_state = context.control_state
        self._signals = context.signals
        self._listeners = context.listeners
        self.closed_by = ""

    def queues(self) -> tuple[str, ...]:
        """The queues to serve in this round; empty if no work is allowed. Raises ``StoreDown``."""
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
