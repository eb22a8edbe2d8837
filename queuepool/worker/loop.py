"""The worker's loop: check the gate, reserve, run, settle, check whether to leave."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from queuepool.board.board import State
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDown, StoreError
from queuepool.events import Looping, WorkerStarting, WorkerStopping
from queuepool.events.listeners import Listeners
from queuepool.payload.lease import Lease
from queuepool.settlement.deferred_hooks import DeferredHook
from queuepool.settlement.outage import Outage
from queuepool.stores.contract import QueueStore
from queuepool.unix.signals import WorkerSignals
from queuepool.worker.attempt import Runner
from queuepool.worker.control_state import ControlState
from queuepool.worker.gate import Gate
from queuepool.worker.limits import Limits, StopReason
from queuepool.worker.membership import Membership
from queuepool.worker.prefetch import Prefetch
from queuepool.worker.slot_writer import SlotWriter

#: seconds by which a store may end a wait late: Redis checks ten times a second
_STORES_TICK = 0.1
#: seconds for which quick jobs run without a check of signals, control state, limits and memory
_LOOKS = 0.001
#: seconds between checks of the board until a new pool's steward has read the control keys
_ORDERS_COME = 0.01


class Worker:
    """Reserves, runs and settles jobs until it has a reason to leave."""

    def __init__(
        self,
        pool: PoolSettings,
        store: QueueStore,
        orders: ControlState,
        attempts: Runner,
        prefetch: Prefetch,
        membership: Membership,
        slot_writer: SlotWriter,
        attention: WorkerSignals,
        outage: Outage,
        limits: Limits,
        listeners: Listeners,
        take_deferred_hook: Callable[[], DeferredHook | None],
        *,
        alone: bool,
        look_after: Callable[[], object],
    ) -> None:
        self._pool = pool
        self._store = store
        self._prefetch = prefetch
        self._membership = membership
        self._orders = orders
        self._attempts = attempts
        self._slot_writer = slot_writer
        self._attention = attention
        self._outage = outage
        self._limits = limits
        self._listeners = listeners
        self._take_deferred_hook = take_deferred_hook
        self._gate = Gate(pool.queues, pool.force, orders, attention, listeners)
        self._alone = alone
        # Does what a steward would do, if there is none.
        self._look_after = look_after
        self._parent = os.getppid()
        self._jobs = 0
        self._deferred_hooks = -1
        self._found_none = False

    def run(self) -> StopReason:
        """Work until there is a reason to leave, settle what is done, and return the reason.

        Raises ``StoreDown`` if a stop signal comes while the store is away.
        """
        self._membership.join()
        while not (self._orders.are_known() or self._attention.stop):
            self._slot_writer.alive()
            self._attention.begin_round()
            self._attention.wait(lambda: time.sleep(_ORDERS_COME))
        self._listeners.emit(WorkerStarting(self._slot_writer.slot.number))
        self._slot_writer.show(State.IDLE)
        while not (reason := self._reason_to_leave()):
            try:
                self._round()
            except StoreDown as error:
                self._outage.lost(error)
                if self._attention.stop:
                    raise  # what is held stays on the board, for the steward
                self._outage.rest()
            except StoreError as error:
                self._prefetch.reports.refused({("", str(error))})
                self._attention.wait(lambda: time.sleep(self._pool.sleep))
        self._prefetch.let_go()
        with suppress(StoreError):  # else the steward does it: the board shows the reserve
            self._prefetch.reclaim()
        with suppress(StoreDown):  # a lone worker's, which has no deferred hooks
            self._orders.look()
        self._call_deferred_hooks()
        self._attempts.lines.sum_up(time.monotonic())
        self._listeners.emit(WorkerStopping(self._slot_writer.slot.number, reason, reason.code, self._jobs))
        return reason

    def _reason_to_leave(self) -> StopReason | None:
        self._slot_writer.alive()
        self._attention.begin_round()
        if self._attention.stop:
            return StopReason.RESTART if self._orders.is_replaced() else StopReason.STOPPED
        if os.getppid() != self._parent:
            return StopReason.ORPHANED
        self._attempts.leave_if_broken()
        reached = self._limits.reached(
            jobs=self._jobs, rss=self._slot_writer.rss(), found_none=self._found_none, now=time.monotonic()
        )
        return reached or (StopReason.RESTART if self._orders.must_leave() else None)

    def _round(self) -> None:
        self._look_after()
        queues = self._gate.queues()
        if not queues:
            # Like Laravel: a worker that leaves when there is no job does not wait for a pause to end.
            self._found_none = True
            self._pause(0.0 if self._limits.is_leaving_when_empty else self._pool.sleep)
            return
        self._call_deferred_hooks()
        lease = self._prefetch.next_job(queues)
        self._found_none = lease is None
        if lease is None:
            self._wait(queues)
        else:
            self._work_on(lease)
            if self._pool.rest:
                self._pause(self._pool.rest)

    def _work_on(self, lease: Lease | None) -> None:
        """Run this job, and the held ones after it until the next checks are due: after a slow job, at once."""
        began = now = time.monotonic()
        looks = began + (0.0 if self._listeners.wants(Looping) else _LOOKS)
        while lease:
            done = self._attempts.run(lease)
            self._jobs += 1
            began, now = now, time.monotonic()
            self._prefetch.took(lease, now - began)
            if done:
                self._prefetch.is_done(done)
            if now >= looks or self._attention.stop or self._limits.is_last(self._jobs):
                return
            lease = self._prefetch.next_held()

    def _call_deferred_hooks(self) -> None:
        """Call the deferred hooks of jobs that failed with their worker; the board shows when there may be one."""
        deferred_so_far = self._orders.deferred_hooks()
        if self._deferred_hooks != deferred_so_far:
            self._deferred_hooks = deferred_so_far
            while hook := self._take_deferred_hook():
                self._prefetch.let_go()
                self._attempts.call_deferred_hook(hook.lease, hook.error)

    def _wait(self, queues: Sequence[str]) -> None:
        """Wait until a job may be ready. A lone worker also wakes for due jobs; in a pool the steward stages them."""
        self._slot_writer.show(State.IDLE)
        self._attempts.lines.rest()
        if self._limits.is_leaving_when_empty:
            return
        self._slot_writer.tidy()  # here, where there is time, not once a job has come
        looks_again = self._prefetch.reports.has_problems or self._store.polls
        timeout = min(self._pool.connection.block_for, self._pool.sleep if looks_again else math.inf)
        self._slot_writer.waits(timeout)
        if not self._alone or self._prefetch.next_due is None or self._prefetch.next_due > timeout:
            self._attention.wait(lambda: self._store.wait(queues, timeout))
        elif (blocking := self._prefetch.next_due - _STORES_TICK) > 0:
            self._attention.wait(lambda: self._store.wait(queues, blocking))
        else:
            self._pause(self._prefetch.next_due)

    def _pause(self, seconds: float) -> None:
        self._prefetch.let_go()
        self._slot_writer.show(State.PAUSED if self._gate.closed_by else State.IDLE)
        self._attention.wait(lambda: time.sleep(seconds))
