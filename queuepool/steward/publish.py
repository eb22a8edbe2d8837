"""Publish in the store, for any host to read, the pool's status and which tracked jobs are running.

A notice has the pool's overview, identity, rates and queues, in a bounded size. A pool that has stopped publishing is
lost: one of the other pools on its store reports that, once.
"""

from __future__ import annotations

import platform
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from queuepool import __version__
from queuepool.board.board import Board, BoardName, Role, Slot
from queuepool.board.counts import QueueFacts
from queuepool.board.held_jobs import Running, Stage
from queuepool.board.overview import PoolOverview, ProcessRow, ran_in
from queuepool.board.pauses import forget_stale_pause
from queuepool.board.status import overview
from queuepool.config.settings import PoolSettings
from queuepool.errors import BadPayload, StoreDenied
from queuepool.events import PoolLost
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease, StateRecord
from queuepool.settlement.states import States
from queuepool.settlement.verdict import Run
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.steward.side_stores import Emitter
from queuepool.stores.contract import NOTICE_KEPT, NOTICE_LASTS, QueueStore
from queuepool.stores.control import ControlKeys, instance_in, newest_of
from queuepool.stores.values import AlertClaim, Values

#: seconds between notices; the first interval is short, as workers are still starting
_PERIOD, _FIRST = 5.0, 1.0
#: the number of the notice by which every living pool has published again since our first one
_EVERYBODY_HAS = 3
#: seconds from a pool's start in which its steward is almost certainly its first one
_YOUNG = 30.0
#: seconds between rounds; after which an unchanged state is written again; and until a state counts as out of date
_REPORT_PERIOD, _REFRESH, STALE = 0.5, 10.0, 30.0
#: seconds between removals of expired states, while there are any, and otherwise
_PRUNE, _SEEK = 60.0, 3600.0
#: a slot, and the number of a job among those that its worker holds
_Held = tuple[Slot, int]
#: seconds over which rates are measured
_RATES_OVER = 60.0
#: most running jobs, and most queues, in a notice: it must stay far below what is read of one
_MOST_JOBS, _MOST_QUEUES = 500, 200
#: seconds between looks, each of which one pool on the store takes; and most jobs of a lost pool that are named
_WATCH_PERIOD, _MOST_NAMED = 10.0, 10
#: the key of the pool that looks, and the owner of the key that marks a loss as reported
_LOOK, _TOLD = "look:pools", "told"


class Publish:
    """Publishes the pool's notice, for ``status --all`` and ``--on`` on any host."""

    def __init__(self, notice: PoolNotice, board: Board, control: ControlKeys, values: Values) -> None:
        self._notice = notice
        self._board = board
        self._control = control
        self._values = values
        self._count = 0
        self._is_first_steward = time.time() - board.header.since < _YOUNG
        #: when the pool began, by the store's clock; and when the last notice was published (monotonic)
        self._began = self._last = 0.0

    def run(self, now: float) -> float:
        if self._last and now - self._last > NOTICE_LASTS:
            forget_loss(self._values, self._notice.instance)  # others may have reported one
        self._control.publish(self._notice.key, self._notice.facts(now))
        self._last = now
        if self._count in (0, _EVERYBODY_HAS):
            self._withdraw_predecessors()
        self._count += 1
        forget_stale_pause(self._board)
        return _PERIOD if self._count > 1 else _FIRST

    def withdraw(self) -> None:
        """Publish that the pool has stopped as requested. Raises ``StoreError``."""
        self._control.withdraw(self._notice.key)
        self._control.note_left(self._notice.last())

    def _withdraw_predecessors(self) -> None:
        """Remove the notices that killed masters of this pool have left."""
        with suppress(StoreDenied):  # a user who may not read them leaves them until they expire
            self._began = self._began or self._notice.began()
            for notice in self._control.pools(NOTICE_KEPT):
                if self._notice.succeeds(notice) and self._is_over(notice):
                    self._control.withdraw(key_of(notice))

    def _is_over(self, notice: Mapping[str, Any]) -> bool:
        """Whether the pool of this notice, which has our place, has ended.

        A process of this system can be checked. For any other, which may be in a second container of this name and
        place, only silence shows it: nothing published since our pool began. A later steward leaves such a notice: it
        is a loss.
        """
        board = BoardName.parsed(Path(str(notice.get("board"))))
        if board.is_of_this_system:
            return not board.has_master
        return self._is_first_steward and self._count == _EVERYBODY_HAS and bool(notice["at"] <= self._began)


class ReportRunning:
    """Writes which tracked jobs run and their progress, for all workers at once, so that no job waits for it.

    Jobs that end within a round are not reported as running.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, store: QueueStore, values: Values, records: States) -> None:
        self._orphaned_boards = orphaned_boards
        self._store = store
        self._values = values
        self._records = records
        #: what the store has of each, and since when (monotonic)
        self._reported: dict[_Held, tuple[Running, float]] = {}
        self._prune_at = 0.0

    def run(self, now: float) -> float:
        # For most workers, one read shows that they run no tracked job.
        slots = [slot for board in self._orphaned_boards.all() for slot in board.of(Role.WORKER) if slot.may_be_tracked]
        tracked = [(slot, one) for slot in slots for one in slot.running() if one.track]
        # A state does not contain the deadline, so a change of that alone is not written.
        found = {(slot, one.number): one._replace(deadline=0.0) for slot, one in tracked}
        new = {held: seen for held, seen in found.items() if self._is_news(held, seen, now)}
        if new:
            self._report(new)
        self._reported = {held: (seen, now) if held in new else self._reported[held] for held, seen in found.items()}
        if now >= self._prune_at:
            # Jobs that end within a round leave states too, so running jobs do not show whether there are any.
            self._prune_at = now + (_PRUNE if self._values.prune_states() or found else _SEEK)
        return _REPORT_PERIOD

    def _is_news(self, held: _Held, seen: Running, now: float) -> bool:
        known, at = self._reported.get(held, (None, 0.0))
        return seen != known or now >= at + _REFRESH

    def _report(self, new: dict[_Held, Running]) -> None:
        until = self._store.now() + STALE
        held = {slot: _held_by(slot) for slot in {slot for slot, _ in new}}
        attempts = [(slot, held[slot].get(number), seen) for (slot, number), seen in new.items()]
        written = [one for slot, lease, seen in attempts if lease and (one := self._written(slot, lease, seen, until))]
        if written:
            self._store.show([lease for lease, _ in written], [state for _, state in written])

    def _written(self, slot: Slot, lease: Lease, seen: Running, until: float) -> tuple[Lease, StateRecord] | None:
        """A job that the slot's worker runs, and its state; ``None`` if it has ended meanwhile."""
        try:
            payload = decode(lease.receipt, lease.attempts)
        except BadPayload:
            return None  # its worker is writing it right now
        if (payload.id, payload.attempts) != (seen.id, seen.attempt):
            return None
        run = Run(began=seen.since, progress=seen.progress, note=seen.note)
        payload = payload.tracked_for(seen.track)
        state = self._records.running(payload, lease.queue, run, until=until, worker=slot.number, pid=slot.pid)
        return (lease, state) if state else None


def _held_by(slot: Slot) -> dict[int, Lease]:
    """The leases of the jobs that its worker runs, by their numbers."""
    try:
        return {one.number: one.lease for one in slot.held() if one.stage == Stage.RUNNING}
    except (ValueError, OSError):
        return {}  # its worker is writing them right now


class PoolNotice:
    """Makes the notices of one pool. ``folder`` is its runtime directory; ``clock`` is the store's.

    ``measured``: the queues as they were last measured.
    """

    def __init__(
        self,
        pool: PoolSettings,
        board: Board,
        folder: Path,
        measured: Mapping[str, QueueFacts],
        clock: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._board = board
        self._measured = measured
        self._clock = clock
        #: notices from one place are of the same pool, before and after its master's death
        self._place = {"host": socket.gethostname(), "pool": pool.name, "runtime_directory": str(folder)}
        self.instance = board.name.instance
        self._rates = _Rates()

    @property
    def host(self) -> str:
        return self._place["host"]

    @property
    def key(self) -> str:
        """The key of the notice."""
        return f"{self.host}:{self._pool.name}:{self.instance}"

    def facts(self, now: float) -> dict[str, Any]:
        """The notice at ``now`` (monotonic), ready for JSON."""
        shown = overview(self._pool.name, self._board)
        processes, left_out = _few_jobs(shown.processes)
        return {
            **replace(shown, processes=processes).to_json(),
            **self._place,
            **self._identity(),
            **self._rates.at(now, shown),
            "jobs_left_out": left_out,
            "queues": list(self._pool.queues),
            **({"weights": list(self._pool.weights)} if self._pool.weights else {}),
            "sizes": self._sizes(),
        }

    def last(self) -> dict[str, Any]:
        """The last notice of a pool that leaves. Raises ``StoreError``."""
        done, failed, released = self._board.totals()
        counts = {"done": done, "failed": failed, "released": released}
        return {**self._place, "id": self.instance, "at": self._clock(), **counts}

    def began(self) -> float:
        """When the pool began, by the store's clock. Raises ``StoreError``."""
        return self._clock() - (time.time() - self._board.header.since)

    def succeeds(self, notice: Mapping[str, Any]) -> bool:
        """Whether this is the notice of another instance in our place."""
        return notice.items() >= self._place.items() and key_of(notice) != self.key

    def _identity(self) -> dict[str, Any]:
        pool = self._pool
        return {
            "id": self.instance,
            "board": str(self._board.name),
            "queuepool": __version__,
            "python": platform.python_version(),
            "connection": pool.connection.name,
            "remote": pool.remote,
            "max_workers": self._board.max_workers,
            "concurrency": pool.concurrency,
        }

    def _sizes(self) -> list[dict[str, Any]]:
        """The fullest queues."""
        found = sorted(self._measured.items(), key=lambda item: (item[1].ready, item[1].oldest), reverse=True)
        return [
            {
                "queue": queue,
                "ready": facts.ready,
                "delayed": facts.delayed,
                "reserved": facts.reserved,
                "oldest": round(facts.oldest, 1),
            }
            for queue, facts in found[:_MOST_QUEUES]
        ]


class _Rates:
    """How many jobs are done and fail in a minute, by the totals of the last one."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int]] = deque()

    def at(self, now: float, shown: PoolOverview) -> dict[str, float | None]:
        """The rates; ``None`` before there are two looks."""
        self._looks.append((now, shown.done, shown.failed))
        while len(self._looks) > 2 and self._looks[1][0] <= now - _RATES_OVER:
            self._looks.popleft()
        then, done, failed = self._looks[0]
        minutes = (now - then) / 60.0
        if not minutes:
            return {"done_per_minute": None, "failed_per_minute": None}
        # Never below 0: a job may write over the board.
        rates = (max(shown.done - done, 0) / minutes, max(shown.failed - failed, 0) / minutes)
        return {"done_per_minute": round(rates[0], 1), "failed_per_minute": round(rates[1], 1)}


def key_of(notice: Mapping[str, Any]) -> str:
    """The key under which this notice is published; that of an older version has its master's pid."""
    return f"{notice['host']}:{notice['pool']}:{instance_in(notice) or notice.get('master')}"


def _few_jobs(processes: Sequence[ProcessRow]) -> tuple[list[ProcessRow], int]:
    """The processes with the first jobs of each, at most ``_MOST_JOBS`` in all; and how many jobs are left out."""
    total = sum(len(process.jobs) for process in processes)
    if total <= _MOST_JOBS:
        return list(processes), 0
    each = max(_MOST_JOBS // max(sum(bool(process.jobs) for process in processes), 1), 1)
    found = [replace(process, jobs=process.jobs[:each]) for process in processes]
    return found, total - sum(len(process.jobs) for process in found)


class WatchPools:
    """Looks for pools that have published nothing for half a minute and were not stopped; emits ``PoolLost``."""

    def __init__(
        self,
        instance: str,
        control: ControlKeys,
        values: Values,
        emitter: Emitter,
        record: Callable[[Mapping[str, Any]], object] | None = None,
    ) -> None:
        """``record``: records what a lost pool ran, by its last notice; ``None`` if this pool keeps no records."""
        self._record = record
        self._instance = instance
        self._control = control
        self._values = values
        self._emitter = emitter

    def run(self, now: float) -> float:
        with suppress(StoreDenied):  # a user who may not take keys leaves it to others
            # Not renewed: any pool may take each look.
            if self._values.claim_alert(_LOOK, self._instance, 0.9 * _WATCH_PERIOD) is AlertClaim.TAKEN:
                self._look()
        return _WATCH_PERIOD

    def _look(self) -> None:
        notices = self._control.pools(NOTICE_KEPT)
        newest = max((notice["at"] for notice in notices), default=0.0)  # ours at least is of now
        for (host, pool, instance), notice in newest_of(notices).items():
            silent = newest - notice["at"]
            if silent <= NOTICE_LASTS or not instance:
                continue
            if self._is_first_to_tell(instance):
                self._emitter.emit(PoolLost(pool, host, instance_in(notice), silent, ran_in(notice, _MOST_NAMED)))
            if self._record:
                self._record_once(f"recorded:{instance}:{notice['at']}", notice)

    def _record_once(self, key: str, notice: Mapping[str, Any]) -> None:
        """By one of the pools that keep records; the one that has told of the loss may keep none."""
        assert self._record
        # For a short time first: if the writing fails, or this steward dies in it, a later look tries again. What was
        # written twice is the same, and is read once.
        if self._values.claim_alert(key, self._instance, _WATCH_PERIOD) is AlertClaim.TAKEN:
            self._record(notice)
            self._values.release_alert(key, self._instance)
            self._values.claim_alert(key, _TOLD, 2 * NOTICE_KEPT)

    def _is_first_to_tell(self, instance: str) -> bool:
        return self._values.claim_alert(_told_key(instance), _TOLD, 2 * NOTICE_KEPT) is AlertClaim.TAKEN


def forget_loss(values: Values, instance: str) -> None:
    """The pool is back: its next loss is reported again."""
    with suppress(StoreDenied):
        values.release_alert(_told_key(instance), _TOLD)


def _told_key(instance: str) -> str:
    return f"gone:{instance}"
