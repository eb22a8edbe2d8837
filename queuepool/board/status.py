"""A pool of this host, read from its board and its directory."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from queuepool.board import open_alerts, pauses
from queuepool.board.about import About
from queuepool.board.board import HELPERS, RUNS_JOBS, Board, Header, Role, Slot, State
from queuepool.board.counts import parked_in
from queuepool.board.fields import Totals
from queuepool.board.health import STUCK, health_of
from queuepool.board.held_jobs import Running
from queuepool.board.overview import AlertRow, JobRow, PauseRow, PoolOverview, ProcessRow, ScalingRow
from queuepool.board.paused_queues import paused_in
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.scaling import scaling_of
from queuepool.unix import proc


@dataclass(frozen=True, slots=True)
class LocalPool:
    """A pool that runs on this host, and what its directory records about it, if that can be read."""

    overview: PoolOverview
    directory: str
    about: About | None
    #: its id among all pools, which its notices have too
    instance: str = ""

    def to_json(self) -> dict[str, Any]:
        return self.overview.to_json() | {"directory": self.directory} | (self.about.facts() if self.about else {})


def board_of(runtime: RuntimeDir) -> Board:
    """The running pool's board. Raises ``NotRunning``, ``ConfigError``, and ``PermissionError`` for another user's."""
    if runtime.path.exists() and not os.access(runtime.path, os.R_OK | os.X_OK):
        raise PermissionError(13, "belongs to another user", str(runtime.path))
    return runtime.board()


def local_pool(name: str, runtime: RuntimeDir, board: Board) -> LocalPool:
    """The pool as its board and its directory show it: works while the store is away or the master is stopped."""
    return LocalPool(overview(name, board), str(runtime.path), runtime.about(), board.name.instance)


def overview(name: str, board: Board) -> PoolOverview:
    """The pool and its processes, from the board and the files beside it."""
    found = _overview(name, board)
    parked = parked_in(board) if board.header.limits_at else 0
    return replace(found, state=health_of(found).state, parked=parked)


def _overview(name: str, board: Board) -> PoolOverview:
    """The same, with the state that the master has written."""
    header = board.header
    done, failed, released = board.totals()
    paused = paused_in(header.paused, lambda: _queues_beside(board))
    known, whole, maintenance = _pauses(board, paused)
    slots = sorted(board.of(Role.TEMPLATE, *HELPERS, Role.WORKER), key=lambda slot: (-slot.role, slot.number))
    processes = [_process(slot) for slot in slots]
    return PoolOverview(
        pool=name,
        master=header.master_pid,
        state=_state_word(board),
        since=iso(header.since),
        beat_age=beat_age(header),
        workers=header.target,
        busy=sum(bool(process.jobs) for process in processes),
        done=done,
        failed=failed,
        released=released,
        restarts=max(header.generation - 1, 0),
        generation=header.generation,
        orphans=header.orphans,
        outdated=sum(slot.generation < header.generation for slot in slots if _is_worker(slot)),
        boot_problem=present_boot_problem(board) or None,
        control_known=bool(header.restart_known),
        maintenance=bool(header.down),
        paused=paused,
        pauses=[_pause(queue, pause) for queue, pause in known.items() if queue in paused],
        paused_since=iso(whole.since) if whole else None,
        paused_by=(whole.by or None) if whole else None,
        maintenance_since=iso(maintenance.since) if maintenance else None,
        maintenance_by=(maintenance.by or None) if maintenance else None,
        store_lost=_iso_or_none(header.store_lost),
        store_full=_iso_or_none(header.store_full),
        failed_store_lost=_iso_or_none(header.failed_store_lost),
        control_store_lost=_iso_or_none(header.control_store_lost),
        unrecorded=header.unrecorded,
        alerts=[_alert(one) for one in open_alerts.read(board)],
        scaling=_scaling(header),
        processes=processes,
    )


def _pauses(
    board: Board, paused: Collection[str]
) -> tuple[dict[str, pauses.Pause], pauses.Pause | None, pauses.Pause | None]:
    """What is known of paused queues, of the pause of the whole pool, and of maintenance mode."""
    known = pauses.read(board) if paused or board.header.down else {}
    return known, pauses.pool_pause(board), known.get(pauses.MAINTENANCE) if board.header.down else None


def beat_age(header: Header) -> float | None:
    """Seconds since the end of the master's last pass; ``None`` for a master of a version that has no beat."""
    return round(max(time.monotonic() - header.beat, 0.0), 1) if header.beat else None


def boot_problem(header: Header) -> str:
    """Why a process of the newest code failed to boot; empty when none has. A later one may have become ready."""
    return header.boot_problem if header.boot_failed >= header.generation else ""


def present_boot_problem(board: Board) -> str:
    """That reason, until all workers run the newest code."""
    problem = boot_problem(board.header)
    is_missing = problem and len(renewed(board.of(Role.WORKER), board.header.generation)) < board.header.target
    return problem if is_missing else ""


def renewed(workers: Iterable[Slot], generation: int) -> set[int]:
    """The numbers of the workers of this generation, or a later one, that live and have become ready."""
    living = [slot for slot in workers if slot.generation >= generation and not slot.dead]
    return {slot.number for slot in living if slot.state != State.STARTING}


def title(name: str, state: State, workers: Sequence[Slot], totals: Totals) -> str:
    """The master's line in ``ps``; ``workers`` are the living ones."""
    busy = sum(worker.state in RUNS_JOBS for worker in workers)
    return (
        f"queuepool: master [{name}] {state.name.lower()} workers={len(workers)} "
        f"busy={busy} done={totals.done} failed={totals.failed}"
    )


def iso(wall: float) -> str:
    """Unix time as ISO 8601 in UTC; empty for an impossible time, which an overwritten board may hold."""
    try:
        # strftime does not pad a year below 1000, and such a text cannot be parsed.
        return f"{datetime.fromtimestamp(wall, UTC).replace(microsecond=0, tzinfo=None).isoformat()}Z"
    except (ValueError, OverflowError, OSError):
        return ""


def _alert(alert: open_alerts.OpenAlert) -> AlertRow:
    return AlertRow(
        kind=alert.kind,
        subject=alert.subject,
        value=alert.value,
        limit=alert.limit,
        since=iso(alert.since),
        text=open_alerts.words_of(alert),
    )


def _scaling(header: Header) -> ScalingRow | None:
    until = header.pinned_until
    return scaling_of(header, iso(time.time() + until - time.monotonic()) if until else None)


def _queues_beside(board: Board) -> list[str]:
    """The pool's queues, as recorded in its directory."""
    found = About.read(board.path.parent)
    return found.queues if found else []


def _pause(queue: str, pause: pauses.Pause) -> PauseRow:
    return PauseRow(queue=queue, since=iso(pause.since), by=pause.by or None)


def _state_word(board: Board) -> str:
    is_stopped = board.name.is_of_this_system and proc.is_stopped(board.name.pid)
    return STUCK if is_stopped else State(board.header.state).name.lower()


def _iso_or_none(wall: float) -> str | None:
    return iso(wall) if wall else None


def _is_worker(slot: Slot) -> bool:
    return bool(slot.role == Role.WORKER and slot.pid and not slot.dead)


def _process(slot: Slot) -> ProcessRow:
    totals = slot.totals if slot.role == Role.WORKER else None
    return ProcessRow(
        role=Role(slot.role).name.lower(),
        number=slot.number,
        pid=slot.pid,
        state="dead" if slot.dead else State(slot.state).name.lower(),
        generation=slot.generation,
        done=totals.done if totals else None,
        failed=totals.failed if totals else None,
        released=totals.released if totals else None,
        memory=slot.rss if totals else None,
        jobs=_jobs(slot) if _is_worker(slot) else (),
    )


def _jobs(slot: Slot) -> tuple[JobRow, ...]:
    return tuple(map(_job, sorted(slot.running(), key=lambda one: one.since)))


def _job(one: Running) -> JobRow:
    return JobRow(
        name=one.job,
        id=one.id,
        queue=one.queue,
        attempt=one.attempt,
        since=iso(one.since),
        running=round(max(time.time() - one.since, 0.0), 1),
        time_left=_time_left(one.deadline),
        progress=one.progress,
        note=None if one.progress is None else one.note,
    )


def _time_left(deadline: float) -> float | None:
    """Seconds until the job's timeout, negative when it is past; ``None`` without one."""
    return round(deadline - time.monotonic(), 1) if deadline else None
