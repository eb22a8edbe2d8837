"""Cancel one job: out of its queue while it waits; by an order on its worker's board while it runs on this host."""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from queuepool.board.about import About
from queuepool.board.board import Board
from queuepool.board.cancelling import Came, Contrary, Ordered, RunningHere, order, running_here, wake_master
from queuepool.board.runtime_dir import boards_in, default_folders
from queuepool.board.shown_pools import pools_in, running_jobs
from queuepool.config.connections import identity_of
from queuepool.errors import BadPayload, Cancelled, StoreDenied, StoreDown, StoreError, TableMissing
from queuepool.events import JobCancelled, JobFailed
from queuepool.events.listeners import LISTENERS
from queuepool.jobs.following import OVER
from queuepool.jobs.following import found as state_of
from queuepool.payload.envelope import decode
from queuepool.settlement import deferred_hooks
from queuepool.settlement.cancelled import WaitingJob, cancel_waiting, cancelled_before, find_waiting
from queuepool.settlement.facts import facts_of
from queuepool.stores.factory import Stores
from queuepool.stores.limits import UNPARKED

#: seconds for which a job that is neither waiting nor running is looked for: it may be on its way to a worker
_ON_ITS_WAY = 1.0
#: seconds beyond the grace within which an order is carried out, where all goes well; and between two looks
_CARRIED_OUT, _PAUSE = 10.0, 0.005
#: reserved jobs of a queue that are read
_MOST = 1000


class CancelOutcome(StrEnum):
    """The outcome of a cancellation."""

    #: it will not run again, and is recorded as failed
    CANCELLED = "cancelled"
    #: it was interrupted, and is back in its queue
    REQUEUED = "requeued"
    #: it waits in its queue, where it was to be put
    WAITS = "waits"
    #: it is over already
    OVER = "over"
    #: a pool of another host runs it
    ELSEWHERE = "elsewhere"
    #: a worker of a pool that is unknown here has it; or its worker has not begun it yet
    RESERVED = "reserved"
    #: the order was given, but has not been carried out yet
    ORDERED = "ordered"
    #: it is being ended already, by an order that says otherwise of where it goes then
    CONTRARY = "contrary"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """The result of cancelling a job; true if it was cancelled. Empty fields do not apply."""

    id: str
    outcome: CancelOutcome
    #: ``waiting``, ``parked`` (for a place of a limit) or ``running``: where it was found
    was: str = ""
    name: str = ""
    queue: str = ""
    #: where it runs, if it does not end
    host: str = ""
    pool: str = ""
    pid: int = 0
    #: why this order was not given
    refusal: str = ""
    #: why a hook ``after_failed`` is not called, if the job has one
    no_hook: str = ""

    def __bool__(self) -> bool:
        return self.outcome in (CancelOutcome.CANCELLED, CancelOutcome.REQUEUED)


#: outcomes that may hold only for a moment
_LOOKED_FOR = (CancelOutcome.RESERVED, CancelOutcome.UNKNOWN)


class CancelWish(NamedTuple):
    """What is to become of the job. ``grace``: seconds for one that can end by itself; ``by`` as ``user@host``."""

    job_id: str
    by: str
    requeue: bool = False
    grace: float = 10.0


class Canceller:
    """Cancels jobs on one connection.

    ``queues``: those to search. ``boards``: those of the pools of this host, opened to write.
    """

    def __init__(self, stores: Stores, queues: Sequence[str], boards: Collection[Board]) -> None:
        self._stores = stores
        self._queues = queues
        self._boards = boards

    def cancel(self, wish: CancelWish) -> Cancellation:
        """Cancel the job, and wait until that is done. Raises ``StoreDown`` and ``StoreError``."""
        until = time.monotonic() + _ON_ITS_WAY
        while True:
            # In this order: a job goes from its queue to a worker, and perhaps back.
            for look in (self._running, self._waiting, self._running):
                if (met := look(wish)) is not None:
                    return met
            found = self._nowhere(wish)
            if found.outcome not in _LOOKED_FOR or time.monotonic() >= until:
                return found
            time.sleep(_PAUSE)

    def _running(self, wish: CancelWish) -> Cancellation | None:
        for board in self._boards:
            for found in running_here(board, wish.job_id):
                ordered = order(found, by=wish.by, grace=wish.grace, requeue=wish.requeue)
                if isinstance(ordered, Contrary):
                    return replace(_said(found, wish, CancelOutcome.CONTRARY), refusal=str(ordered))
                if ordered:
                    return self._awaited(wish, ordered)
        return None

    def _awaited(self, wish: CancelWish, ordered: Ordered) -> Cancellation | None:
        """The result of the order; ``None``: search again, as the attempt had ended before the order."""
        found, until = ordered.found, time.monotonic() + wish.grace + _CARRIED_OUT
        while not (came := ordered.came) and time.monotonic() < until:
            time.sleep(_PAUSE)
        said = partial(_said, found, wish)
        if came is None:
            return said(CancelOutcome.ORDERED)
        if came is Came.OF_IT:
            return said(CancelOutcome.REQUEUED if wish.requeue else CancelOutcome.CANCELLED)
        if self._is_recorded(wish.job_id):
            return said(CancelOutcome.CANCELLED)
        return said(CancelOutcome.OVER) if wish.requeue else None  # a second order would hit its next attempt

    def _waiting(self, wish: CancelWish) -> Cancellation | None:
        for queue in self._queues:
            if wish.requeue and (parked := self._parked(queue, wish.job_id)) is not None:
                return parked
            was_parked = not wish.requeue and self._unpark(queue, wish.job_id)
            found = find_waiting(self._stores, queue, wish.job_id)
            if not found:
                continue
            about: dict[str, Any] = {"id": wish.job_id, "name": found.payload.name, "queue": queue}
            about["was"] = "parked" if was_parked else "waiting"
            if wish.requeue:
                return Cancellation(outcome=CancelOutcome.WAITS, **about)
            if (no_hook := self._take_out(found, wish)) is not None:
                return Cancellation(outcome=CancelOutcome.CANCELLED, no_hook=no_hook, **about)
        return None

    def _parked(self, queue: str, job_id: str) -> Cancellation | None:
        """One that waits for a place of a limit, and goes on doing so."""
        with suppress(TableMissing):  # the database was made before there were limits
            if found := self._stores.limits.find(queue, job_id):
                name = decode(found.payload).name
                return Cancellation(id=job_id, outcome=CancelOutcome.WAITS, was="parked", name=name, queue=queue)
        return None

    def _unpark(self, queue: str, job_id: str) -> bool:
        """One that waits for a place of a limit comes back into its queue, and is met there before workers take it.

        Returns whether there is one.
        """
        with suppress(TableMissing):  # as above
            return self._stores.limits.unpark(queue, job_id, UNPARKED) > 0
        return False

    def _take_out(self, found: WaitingJob, wish: CancelWish) -> str | None:
        """As ``_leave_hook``; ``None`` if it waits no longer."""
        error = cancelled_before(found.payload, wish.by)
        if not cancel_waiting(self._stores, found, error):
            return None
        no_hook = self._leave_hook(found, error)
        facts = facts_of(found.payload, found.lease.queue)
        LISTENERS.emit(JobCancelled(facts, wish.by))
        LISTENERS.emit(JobFailed(facts, error))
        return no_hook

    def _leave_hook(self, found: WaitingJob, error: Cancelled) -> str:
        """``after_failed`` is user code: a worker of this host calls it. Returns why none does; empty if one may.

        One of a pool that serves the job's queue, as that knows the job; of another pool on the same store only if
        there is no such pool: its worker says so if it does not know the job.
        """
        store, queue = identity_of(self._stores.settings), found.lease.queue
        boards = [board for board in self._boards if board.has_master and board.header.store == store]
        board = next((board for board in boards if _serves(board, queue)), next(iter(boards), None))
        if board is None:
            return "nobody calls its after_failed, if it has one: no pool on this store runs here"
        deferred_hooks.leave(board.path.parent, store, found.lease, error)
        # The steward counts here as well. Whoever writes second has either read the other's number, or left its note
        # before the first one wrote: no worker misses a note.
        board.header.note_deferred_hook()
        wake_master(board)
        return ""

    def _nowhere(self, wish: CancelWish) -> Cancellation:
        """The result for a job that neither waits nor runs here: where it may be."""
        job_id = wish.job_id
        said = partial(Cancellation, id=job_id)
        state = state_of(self._stores, job_id)
        if (state and state.state in OVER) or self._is_recorded(job_id, cancelled=False):
            return said(outcome=CancelOutcome.OVER)
        noticed = pools_in(self._stores.control.pools())
        if runs := running_jobs(pool for pool in noticed if pool.host != socket.gethostname()).get(job_id):
            place: dict[str, Any] = {"host": runs.shown.host, "pool": runs.shown.pool, "pid": runs.process.pid}
            about: dict[str, Any] = {"was": "running", "name": runs.job.name, "queue": runs.job.queue}
            return said(outcome=CancelOutcome.ELSEWHERE, **about, **place)
        return said(outcome=CancelOutcome.RESERVED if self._is_reserved(job_id) else CancelOutcome.UNKNOWN)

    def _is_recorded(self, job_id: str, *, cancelled: bool = True) -> bool:
        """Whether it is among the failed jobs; ``cancelled``: as one that was cancelled."""
        try:
            record = self._stores.failed.get(job_id)
        except StoreDown as error:
            if error.store:
                return False  # the failed store is elsewhere, and away
            raise
        return record is not None and (not cancelled or record.exception.startswith(f"{Cancelled.__name__}: "))

    def _is_reserved(self, job_id: str) -> bool:
        for queue in self._queues:
            for raw in self._first_reserved(queue):
                with suppress(BadPayload):
                    if decode(raw).id == job_id:
                        return True
        return False

    def _first_reserved(self, queue: str) -> Sequence[bytes]:
        try:
            return self._stores.queue.first(queue, _MOST, "reserved")
        except StoreDenied:
            return ()
        except StoreDown:
            raise
        except StoreError:  # a key of the wrong type
            return ()


def _serves(board: Board, queue: str) -> bool:
    about = About.read(board.path.parent)
    return about is not None and queue in about.queues


def _said(found: RunningHere, wish: CancelWish, outcome: CancelOutcome) -> Cancellation:
    job, pid = found.job, found.slot.pid
    return Cancellation(id=wish.job_id, outcome=outcome, was="running", name=job.job, queue=job.queue, pid=pid)


def cancel_in(stores: Stores, wish: CancelWish) -> Cancellation:
    """As ``Canceller.cancel``, with the pools of this host that are known by their place or by their notices."""
    notices = [notice for notice in stores.control.pools() if notice["host"] == socket.gethostname()]
    folders = [Path(str(notice.get("runtime_directory"))) for notice in notices]
    state = state_of(stores, wish.job_id)
    queues = dict.fromkeys([state.queue] if state and state.queue else [])
    with suppress(StoreDenied):  # a Redis user without +scan
        queues |= dict.fromkeys(stores.queue.queues())
    with boards_in([*default_folders(identity_of(stores.settings)), *folders]) as boards:
        return Canceller(stores, tuple(queues), boards).cancel(wish)
