"""Publish in the store, for any host to read, the pool's status and which tracked jobs are running."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from queuepool.board.board import Board, Role, Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.running import Running
from queuepool.board.status import overview
from queuepool.errors import BadPayload, StoreDenied
from queuepool.payload.ending import StateRecord
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease
from queuepool.settlement.run import Run
from queuepool.settlement.states import States
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import NOTICE_KEPT, QueueStore
from queuepool.stores.values import Values

#: seconds between notices; the first interval is short, as workers are still starting
_PERIOD, _FIRST = 5.0, 1.0
#: seconds between rounds; after which an unchanged state is written again; and until a state counts as out of date
_REPORT_PERIOD, _REFRESH, STALE = 0.5, 10.0, 30.0
#: seconds between removals of expired states, while there are any, and otherwise
_PRUNE, _SEEK = 60.0, 3600.0
#: a slot, and the number of a job among those that its worker holds
_Held = tuple[Slot, int]


class Publisher(Protocol):
    """The part of a store that keeps the pools' notices."""

    def publish(self, pool: str, facts: Mapping[str, Any]) -> None: ...

    def withdraw(self, pool: str) -> None: ...

    def pools(self, within: float) -> list[dict[str, Any]]: ...


class Publish:
    """Publishes what ``status`` shows, for ``status --all`` on other hosts; ``folder`` is the runtime directory."""

    def __init__(self, name: str, board: Board, folder: Path, store: Publisher, queues: Sequence[str]) -> None:
        self._name = name
        self._board = board
        self._store = store
        #: notices from one place are of the same pool, before and after its master's death
        self._place = {"host": socket.gethostname(), "pool": name, "runtime_directory": str(folder)}
        self._queues = list(queues)
        self._master = os.getppid()
        self._pause = _FIRST

    def run(self, now: float) -> float:
        facts = overview(self._name, self._board).to_json()
        self._store.publish(self._key(self._master), {**facts, **self._place, "queues": self._queues})
        pause, self._pause = self._pause, _PERIOD
        if pause == _FIRST:
            self._withdraw_predecessors()
        return pause

    def withdraw(self) -> None:
        """Remove the notice: the pool has ended. Raises ``StoreError``."""
        self._store.withdraw(self._key(self._master))

    def _withdraw_predecessors(self) -> None:
        """Remove the notices that killed masters of this pool have left."""
        with suppress(StoreDenied):  # a user who may not read them leaves them until they expire
            for notice in self._store.pools(NOTICE_KEPT):
                if notice.items() >= self._place.items() and notice.get("master") != self._master:
                    self._store.withdraw(self._key(notice.get("master")))

    def _key(self, master: object) -> str:
        return f"{self._place['host']}:{self._name}:{master}"


class ReportRunning:
    """Writes which tracked jobs run and how far they are, for all workers at once, so that no job waits for it.

    Jobs that end within a round are not reported as running.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, store: QueueStore, values: Values, records: States) -> None:
        self._orphaned_boards = orphaned_boards
        self._store = store
        self._values = values
        self._records = records
        #: what the store knows of each, and since when (monotonic)
        self._reported: dict[_Held, tuple[Running, float]] = {}
        self._prune_at = 0.0

    def run(self, now: float) -> float:
        # One look tells of most workers that they run no tracked job.
        slots = [slot for board in self._orphaned_boards.all() for slot in board.of(Role.WORKER) if slot.may_be_tracked]
        tracked = [(slot, one) for slot in slots for one in slot.running() if one.track]
        # A state does not say the deadline, so another one is no news.
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
