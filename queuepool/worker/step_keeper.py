"""What a worker does for the steps of its jobs: asks the store, shows on the board, and says when a job is to leave."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from queuepool.errors import LeaseEnded, Leaving, StoreDenied, StoreDown, StoreError
from queuepool.jobs.attempt_steps import has_kept_steps
from queuepool.jobs.current_job import Current
from queuepool.payload.options import late_by
from queuepool.stores.kept_steps import KeptSteps
from queuepool.unix import proc
from queuepool.unix.originals import sleep
from queuepool.worker.context import WorkerContext

T = TypeVar("T")
#: seconds of the first pause while the store is away, and of the longest
_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
#: seconds for which a measurement of memory is reused
_MEASURED = 1.0


class WorkerSteps:
    """The ``StepKeeper`` of one worker. ``steps``: the kept ones, for all threads; opened at the first use."""

    def __init__(self, context: WorkerContext, steps: Callable[[], KeptSteps], *, waits: bool = True) -> None:
        """``waits``: wait while the store is away."""
        self.is_shared = context.pool.concurrency > 1 and not context.alone
        self._context = context
        self._steps = steps
        self._waits = waits
        self._sealer = context.settler.sealer
        self._rss, self._rss_until = 0.0, 0.0

    def of_job(self, job: Current, *, may_leave: bool) -> dict[str, bytes]:
        found = self._insist(lambda: self._steps().of_job(job.id), may_leave)
        return {name: self._sealer.opened(job.payload, raw) for name, raw in found.items()}

    def has_any(self, job: Current) -> bool:
        try:
            return bool(self._steps().of_job(job.id))
        except StoreError as error:
            if isinstance(error, StoreDown) and not isinstance(error, StoreDenied):
                raise
        return False  # as long as none can be read, none can be kept

    def keep(self, job: Current, values: Mapping[str, bytes], *, may_leave: bool) -> None:
        lease, sealed = job.lease, {name: self._sealer.sealed(job.payload, raw) for name, raw in values.items()}
        assert lease
        if not self._insist(lambda: self._steps().keep(lease, job.id, sealed), may_leave):
            raise LeaseEnded

    def show(self, job: Current, name: str, place: bytes) -> None:
        self._context.slot_writer.place(job.id, name, place)

    def must_leave(self, job: Current, *, has_progress: bool) -> bool:
        context = self._context
        if context.is_draining() or job.queue in context.control_state.paused():
            return True
        # Without progress it would leave for ever: the next worker may be as old, or as large, before its first step.
        return has_progress and context.limits.is_over(rss=self._memory(), now=time.monotonic())

    def _memory(self) -> float:
        now = time.monotonic()
        if now >= self._rss_until:
            self._rss, self._rss_until = proc.resident_mb(os.getpid()), now + _MEASURED
        return self._rss

    def _insist(self, verb: Callable[[], T], may_leave: bool) -> T:
        """Ask the store until it answers, as the verb may be repeated. The job's timeout ends the wait.

        ``may_leave``: so does a stop, with ``Leaving``.
        """
        pause = _PAUSE
        while True:
            try:
                return verb()
            except StoreDown as error:
                if isinstance(error, StoreDenied) or not self._waits:
                    raise
            if may_leave and self._context.signals.stop:
                raise Leaving
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def is_of(kind: type[BaseException], error: BaseException | None) -> bool:
    """Whether the attempt ended by this alone, as its tasks may have raised it together."""
    if isinstance(error, BaseExceptionGroup):
        return error.split((kind, asyncio.CancelledError))[1] is None and error.subgroup(kind) is not None
    return isinstance(error, kind)


def went_on(job: Current, now: float) -> bool:
    """Whether a job that is too late for its first attempt has begun all the same, and has left at one of its steps.

    That is as if it had not begun, but for what is kept of it. Only for such a job the store is asked.
    """
    return job.attempts <= 1 and late_by(job.payload.fields, now) > 0 and has_kept_steps(job)


def has_left(job: Current, error: BaseException | None) -> bool:
    """Whether the job has left at one of its steps, and has asked for no other end."""
    return job.verdict is None and is_of(Leaving, error)
