"""The rounds of a worker that runs one job at a time: check the gate, reserve, run and settle, or wait."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from queuepool.board.board import State
from queuepool.events import Looping
from queuepool.payload.lease import Lease
from queuepool.unix.originals import sleep
from queuepool.worker.attempt import Runner
from queuepool.worker.context import WorkerContext
from queuepool.worker.job_lines import JobLines
from queuepool.worker.prefetch import Prefetch, PrefetchSize
from queuepool.worker.rounds import Rounds

#: seconds by which a store may end a wait late: Redis checks its waits ten times a second
_STORES_TICK = 0.1
#: seconds for which quick jobs run without checking signals, control state, limits and memory
_CHECK_INTERVAL = 0.001
#: the part of ``retry_after`` for which a reserve may wait at the server, as its lease is counted from before; and the
#: shortest ``retry_after``, in seconds, that leaves enough of it
_WAITS, _LONG_ENOUGH = 1 / 6, 3.0


class Worker(Rounds):
    """Reserves, runs and settles jobs, one at a time."""

    def __init__(self, context: WorkerContext, size: PrefetchSize) -> None:
        job_lines = JobLines()
        super().__init__(context, Runner(context, job_lines), job_lines)
        self._prefetch = Prefetch(context, self._membership, self._reports, size)
        self._reserves_waiting = _may_reserve_waiting(context)

    def _round(self) -> None:
        self._context.run_chores()
        queues = self._gate.queues()
        if not queues:
            # Like Laravel: a worker that leaves when there is no job does not wait for a pause to end.
            self._found_none = True
            self._pause(0.0 if self._limits.is_leaving_when_empty else min(self._pool.sleep, self._may_idle()))
            return
        self._call_deferred_hooks()
        lease = None if self._may_wait_first(queues) else self._prefetch.next_job(queues)
        if lease is None:
            self._wait(queues)
            self._found_none = not self._slot_writer.batch.waiting
        else:
            self._found_none = False
            self._work_on(lease)
            self._idle_since = time.monotonic()
            if self._pool.rest:
                self._pause(self._pool.rest)

    def _let_go(self) -> None:
        self._prefetch.let_go()

    def _leave_to_the_steward(self) -> None:
        self._prefetch.leaves_nothing_at_the_server()

    def _reclaim(self) -> None:
        self._prefetch.reclaim()

    def _abandon(self) -> None:
        self._slot_writer.meter.abandons(self._slot_writer.slot.since)

    def _work_on(self, lease: Lease | None) -> None:
        """Run this job, then held ones until the next checks are due; after a slow job they are due at once."""
        began = now = time.monotonic()
        next_check = began + (0.0 if self._listeners.wants(Looping) else _CHECK_INTERVAL)
        while lease:
            self._runner.run(lease)
            self._jobs += 1
            began, now = now, time.monotonic()
            self._prefetch.took(lease, now - began)
            if now >= next_check or self._signals.stop or self._limits.is_last(self._jobs):
                return
            lease = self._prefetch.next_held()

    def _make_way(self) -> None:
        self._let_go()  # no job waits behind it

    def _wait(self, queues: Sequence[str]) -> None:
        """Wait until a job may be ready. A lone worker also wakes for due jobs; in a pool the steward stages them."""
        if self._limits.is_leaving_when_empty:
            self._show_idle()
            return
        polls = self._reports.has_problems or self._store.polls
        timeout = min(self._pool.connection.block_for, self._pool.sleep if polls else math.inf, self._may_idle())
        self._slot_writer.waits(timeout)
        if not self._context.alone or self._prefetch.next_due is None or self._prefetch.next_due > timeout:
            self._block(queues, timeout)
        elif (blocking := self._prefetch.next_due - _STORES_TICK) > 0:
            self._block(queues, blocking)
        else:
            self._settle_down()
            self._pause(self._prefetch.next_due)

    def _block(self, queues: Sequence[str], timeout: float) -> None:
        """Wait in the store; if it can, it reserves the next job as soon as there is one."""
        if self._can_reserve_waiting:
            longest = self._pool.connection.retry_after * _WAITS
            self._prefetch.await_jobs(queues, min(timeout, longest), self._settle_down)
        else:
            self._settle_down()
            self._signals.wait(lambda: self._store.wait(queues, timeout))

    def _settle_down(self) -> None:
        """What is put off while there are jobs; now, while there is time, rather than once one has come."""
        self._show_idle()
        self._slot_writer.tidy()

    def _show_idle(self) -> None:
        self._slot_writer.show(State.IDLE)
        self._job_lines.rest()

    @property
    def _can_reserve_waiting(self) -> bool:
        # A listener that may forbid each job is asked before the job is reserved.
        return self._reserves_waiting and not (
            self._reports.has_problems or self._listeners.wants(Looping) or self._limits.is_leaving_when_empty
        )

    def _may_wait_first(self, queues: Sequence[str]) -> bool:
        """Whether to wait without a look, as nothing was left; a lone worker looks: it wakes for what is due."""
        return not self._context.alone and self._prefetch.has_none_left(queues) and self._can_reserve_waiting

    def _may_idle(self) -> float:
        return self._limits.may_idle(self._idle())

    def _pause(self, seconds: float) -> None:
        self._prefetch.let_go()
        self._slot_writer.show(State.PAUSED if self._gate.closed_by else State.IDLE)
        self._signals.wait(lambda: sleep(seconds))


def _may_reserve_waiting(context: WorkerContext) -> bool:
    """Whether the store can, and a lease that is some seconds shorter is long enough: in a pool it is renewed."""
    connection = context.pool.connection
    is_renewed = connection.renew or context.alone
    return context.store.reserve_waiting is not None and is_renewed and connection.retry_after >= _LONG_ENOUGH
