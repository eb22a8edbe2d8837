"""The foreground worker: it prepares for itself what a master would."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TypedDict, Unpack

from queuepool import __version__, log
from queuepool.board.board import private_slot
from queuepool.config.settings import PoolSettings
from queuepool.events import WorkerStarting, WorkerStopping
from queuepool.jobs.context import running_data
from queuepool.jobs.current_job import running, running_id
from queuepool.log.captured import captured
from queuepool.pool import announce
from queuepool.pool.examine import make_missing_files, refuse_unfit
from queuepool.pool.processes import boot
from queuepool.pool.worker_process import limits_of, work
from queuepool.unix import collector, stray_processes
from queuepool.unix.originals import sleep
from queuepool.unix.places import lasting
from queuepool.unix.signals import Alarm, WorkerSignals, reset_inherited
from queuepool.worker.context import StopReason
from queuepool.worker.plan import cut
from queuepool.worker.slot_writer import SlotWriter

_log = logging.getLogger("queuepool")


class Ends(TypedDict):
    """When the worker leaves by itself: after one job, without a job, or after these seconds without one (0: never)."""

    once: bool
    stop_when_empty: bool
    stop_when_empty_for: float


def work_alone(pool: PoolSettings, *, brief: bool = False, **ends: Unpack[Ends]) -> int:
    """Work until there is a reason to leave; returns the exit code. Raises ``BootFailure`` and ``StoreUnfit``.

    ``brief``: do not log the worker's own start and stop.
    """
    pool = replace(pool, log=lasting(pool.log) if pool.log else None)  # jobs may leave the working directory
    reset_inherited()
    signals = WorkerSignals()
    signals.listen()
    log.setup(pool, "worker=1", write_timeout=1.0, first=True, running=running_id, context=running_data)
    announce.made(make_missing_files(pool.connection))
    refuse_unfit(pool.connection, pool.queues[0])
    if not brief:
        announce.beginning(__version__, pool, workers=1, directory=None)
    trace = os.fdopen(os.dup(2), "wb", buffering=0)  # descriptor 2 may lead to the log from here on
    collector.expect_jobs()
    with stray_processes.ending_with_us(), captured(running):
        alarm = Alarm(trace)
        boot(pool, signals, alarm, unlogged=(WorkerStarting, WorkerStopping) if brief else ())
        if not brief:
            announce.jobs()
        settings = _without_renewal(pool)
        if not brief and (warning := cut(pool.timeout, settings)[1]):
            _log.warning("%s: a lone worker has no steward", warning)
        slot_writer = SlotWriter(private_slot(), pool.name, alarm, signals, stall_timeout=0.0)
        return _work(settings, slot_writer, signals, ends).code


def _work(settings: PoolSettings, slot_writer: SlotWriter, signals: WorkerSignals, ends: Ends) -> StopReason:
    limits = limits_of(settings, slot_writer, **ends)
    reason = work(settings, slot_writer, signals, limits)
    if reason is StopReason.ONCE and not slot_writer.slot.hand_number:
        # As artisan does: a caller in a loop should not spin. Source: Worker.php, runNextJob (13.x).
        signals.wait(lambda: sleep(settings.sleep))
    return reason


def _without_renewal(pool: PoolSettings) -> PoolSettings:
    """There is no steward to renew leases: a job must end before its lease."""
    return replace(pool, connection=replace(pool.connection, renew=False))
