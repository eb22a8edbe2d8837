"""Assembles a worker from settings and a slot."""

from __future__ import annotations

import logging
import os
import time
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache, partial
from types import SimpleNamespace

from queuepool.board.board import Board
from queuepool.board.fields import Header, Slot
from queuepool.board.marks import flow_marker, limit_marker
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.errors import BootFailure, StoreDown, StoreError
from queuepool.events import FlowEvent
from queuepool.events.listeners import LISTENERS
from queuepool.jobs.attempt_steps import set_step_keeper
from queuepool.jobs.current_job import set_batches, set_progress, set_stopping
from queuepool.jobs.laravel_cache import set_cache
from queuepool.jobs.registry import REGISTRY, in_threads, unregistered, unserved
from queuepool.pool.examine import problem_of_limits
from queuepool.settlement import deferred_hooks
from queuepool.settlement.attempts import attempt_records
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.settlement.verdict import RanBy
from queuepool.steward.side_stores import FailureRecorder, SideStores
from queuepool.stores.factory import Stores, follow_primary, primary_as_told
from queuepool.unix import fork
from queuepool.unix.signals import WorkerSignals
from queuepool.worker.context import (
    BoardControlState,
    ControlState,
    Limits,
    StopReason,
    StoreControlState,
    WorkerContext,
)
from queuepool.worker.lifespans import refuse_lifespans
from queuepool.worker.loop import Rounds, Worker
from queuepool.worker.prefetch_size import PrefetchSize
from queuepool.worker.slot_writer import SlotWriter
from queuepool.worker.step_keeper import WorkerSteps

_log = logging.getLogger("queuepool")
#: seconds between looks at limits by a worker without a steward
_SWEEP = 0.1


def limits_of(
    settings: PoolSettings,
    slot_writer: SlotWriter,
    *,
    once: bool = False,
    stop_when_empty: bool = False,
    stop_when_empty_for: float = 0.0,
) -> Limits:
    """The limits of a worker that has just imported its modules: a relative ``memory`` counts from its size now."""
    booted, memory = slot_writer.rss(), settings.memory
    if memory.is_too_small(booted) and _is_first(slot_writer):
        _log.warning(
            "memory (%g MB) is below what a worker takes once its modules are imported (%.0f MB): each leaves after one"
            " job; raise it, or set by how much a worker may grow: memory = +64", memory.megabytes, booted,
        )  # fmt: skip
    return Limits.drawn(
        memory=memory.total(booted),
        max_jobs=settings.max_jobs,
        max_time=settings.max_time,
        once=once,
        stop_when_empty=stop_when_empty,
        stop_when_empty_for=stop_when_empty_for,
    )


def warn_of_jobs(settings: PoolSettings, header: Header, slot: Slot, served: Collection[str]) -> None:
    """Warn of jobs that will never run, or will run in threads, as far as the modules show; but only once."""
    if slot.number > 1:
        return
    ours = {one.name: one.pushes for one in settings.schedules if one.queue in settings.queues}
    warnings = unserved(REGISTRY, {*served, *settings.queues}, settings.queues)
    warnings += [f"schedule {name}: {words}" for name, words in unregistered(REGISTRY, ours)]
    warnings += in_threads(REGISTRY) if settings.concurrency > 1 else []
    digest = zlib.crc32("\n".join(warnings).encode("utf-8", "replace"))  # 0 if there are none
    if digest != header.warned:
        header.warned = digest
        for warning in warnings:
            _log.warning("%s", warning)


def work(
    settings: PoolSettings,
    slot_writer: SlotWriter,
    signals: WorkerSignals,
    limits: Limits,
    board: Board | None = None,
    runtime: RuntimeDir | None = None,
) -> StopReason:
    """Run one worker until it leaves; without a board it is alone and does without a steward.

    Raises ``BootFailure`` for a ``@lifespan`` that does not begin, or for what this worker cannot have.
    """
    stores, alone = _own_stores(settings), board is None
    # Jobs that run side by side push and ask from threads of their own.
    beside = Stores(settings.connection, shared=True) if settings.concurrency > 1 else stores
    recorder = _recorder(stores) if alone else None
    outage = Outage(signals, LISTENERS, announces=alone, meanwhile=slot_writer.alive, ask_again=stores.ask_again)
    context = WorkerContext(
        pool=settings,
        store=stores.queue,
        registry=REGISTRY,
        listeners=LISTENERS,
        signals=signals,
        slot_writer=slot_writer,
        outage=outage,
        settler=_settler(settings, stores, outage, slot_writer.slot, board),
        batches=lambda: beside.batches,
        control_state=_control_state(settings, stores, slot_writer, board),
        limits=limits,
        take_deferred_hook=lambda: deferred_hooks.take(runtime.path, runtime.store) if runtime else None,
        run_chores=_lone_chores(settings, stores, recorder) if alone else None,
        alone=alone,
        end_stale_calls=_where_the_store_is(settings, board),
    )
    LISTENERS.add(FlowEvent, lambda event: slot_writer.meter.ends_flow(event.state))
    set_batches(context.settler.endings.batch_of, context.batches)
    set_stopping(partial(_is_stopping, context))
    set_progress(slot_writer.progress)
    _keep_for_jobs(context)
    reason = _run(_worker(context, settings), recorder)
    slot_writer.meter.leaves(reason.counted_as, slot_writer.growth.most[0])
    slot_writer.leave()
    return reason


def _own_stores(settings: PoolSettings) -> Stores:
    if problem := problem_of_limits(settings):
        raise BootFailure(problem)
    stores = Stores(settings.connection)
    if stores.reassertion:
        stores.reassertion.come_after()
    return stores


def _where_the_store_is(settings: PoolSettings, board: Board | None) -> Callable[[], object] | None:
    """In a pool the board says it; a worker alone follows the sentinels itself, if there are any."""
    if board:
        return primary_as_told(settings.connection, board.header)
    own = SimpleNamespace(store_epoch=0, store_config_epoch=0, store_at="")
    follow_primary(settings.connection, own, fork.wake_self)
    return None


def _keep_for_jobs(context: WorkerContext) -> None:
    """What jobs keep in the store, from threads of their own; few do, so nothing is opened yet."""
    shared = cache(lambda: Stores(context.pool.connection, shared=True))
    set_step_keeper(WorkerSteps(context, lambda: shared().steps))
    set_cache(lambda: shared().laravel_cache)


def _is_stopping(context: WorkerContext) -> bool:
    """The running job asks: so it can end by itself."""
    context.slot_writer.may_end()
    return context.is_draining()


def _worker(context: WorkerContext, settings: PoolSettings) -> Rounds:
    if settings.concurrency > 1 and not context.alone:
        from queuepool.worker.lane_worker import LaneWorker  # imported here: few pools run jobs side by side

        return LaneWorker(context, Stores(settings.connection).queue)
    refuse_lifespans()
    return Worker(context, _prefetch_size(settings, context.limits, context.alone))


def _is_first(slot_writer: SlotWriter) -> bool:
    """Whether this worker is the one to log what each of them would log."""
    return slot_writer.slot.number <= 1 >= slot_writer.slot.incarnation


def _settler(settings: PoolSettings, stores: Stores, outage: Outage, slot: Slot, board: Board | None) -> Settler:
    records = attempt_records(settings, _ran_by(slot, board), stores.attempts)
    settler = Settler(stores.queue, outage, LISTENERS, settings.connection, settings.track, records)
    if board:
        settler.mark_flows, settler.mark_limits = flow_marker(board.header), limit_marker(board.header)
        if _has_limits(settings):
            settler.mark_limits()  # others may have parked jobs before this pool began
    return settler


def _ran_by(slot: Slot, board: Board | None) -> RanBy:
    return RanBy(os.getpid(), slot.number, slot.generation, board.header.since if board else None)


def _lone_chores(
    settings: PoolSettings, stores: Stores, recorder: FailureRecorder | None
) -> Callable[[], object] | None:
    """What a worker without a steward does in each round."""
    run_first: Callable[[], object] | None = recorder.run if recorder else None
    if _has_limits(settings):
        run_first = _also_limits(stores, run_first)
    if not settings.keep_done:
        return run_first
    from queuepool.steward.attempts import TRIM_AGAIN, TrimAttempts  # imported here: few keep records

    trim, due = TrimAttempts(stores.attempts, settings.queues), 0.0

    def run() -> None:
        nonlocal due
        if run_first:
            run_first()
        if (now := time.monotonic()) >= due:
            due = now + TRIM_AGAIN  # first: it may raise
            due = now + trim.run(now)

    return run


def _has_limits(settings: PoolSettings) -> bool:
    """Whether jobs of this code, or of this pool's queues, have limits."""
    return bool(settings.limits) or any(REGISTRY.find(name).options.limits for name in REGISTRY.names())


def _also_limits(stores: Stores, run_first: Callable[[], object] | None) -> Callable[[], object]:
    swept = 0.0

    def run() -> None:
        nonlocal swept
        if run_first:
            run_first()
        if (now := time.monotonic()) >= swept:
            swept = now + _SWEEP
            stores.limits.sweep()

    return run


def _control_state(
    settings: PoolSettings, stores: Stores, slot_writer: SlotWriter, board: Board | None
) -> ControlState:
    if board is None:
        return StoreControlState(stores.control, settings.queues, LISTENERS)
    return BoardControlState(board.header, slot_writer.slot.generation, settings.queues)


def _run(worker: Rounds, recorder: FailureRecorder | None) -> StopReason:
    try:
        reason = worker.run()
    except StoreDown:
        # Stopped while the store is away: the steward settles what is still held, or its lease ends.
        return StopReason.INTERRUPTED
    if recorder:
        with suppress(StoreError):  # what cannot be recorded waits beside the jobs, for the next worker
            recorder.record()
    return reason


def _recorder(stores: Stores) -> FailureRecorder | None:
    return FailureRecorder(stores.forwarder, LISTENERS, SideStores(LISTENERS)) if stores.forwarder else None


def _prefetch_size(settings: PoolSettings, limits: Limits, alone: bool) -> PrefetchSize:
    """One job at a time if no steward would give waiting jobs back, or if a rest follows each job."""
    return PrefetchSize(1 if alone or limits.once or settings.rest else settings.reserve_ahead)
