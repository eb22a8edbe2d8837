"""Publish in the store, for any host to read, the pool's status and which tracked jobs are running."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from queuepool.board.board import Board, BoardName, Role, Slot
from queuepool.board.held_jobs import Running, Stage
from queuepool.board.pauses import forget_stale_pause
from queuepool.errors import BadPayload, StoreDenied
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease, StateRecord
from queuepool.settlement.run import Run
from queuepool.settlement.states import States
from queuepool.steward.notice import PoolNotice, key_of
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.steward.watch_pools import forget_loss
from queuepool.stores.contract import NOTICE_KEPT, NOTICE_LASTS, QueueStore
from queuepool.stores.control import ControlKeys
from queuepool.stores.values import Values

#: seconds between notices; the first interval is short, as workers are still starting
_PERIOD, _FIRST = 5.0, 1.0
#: the number of the notice by which every pool that lives has published again since our first one
_EVERYBODY_HAS = 3
#: seconds for which a pool has had no second steward, or hardly ever
_YOUNG = 30.0
#: seconds between rounds; after which an unchanged state is written again; and until a state counts as out of date
_REPORT_PERIOD, _REFRESH, STALE = 0.5, 10.0, 30.0
#: seconds between removals of expired states, while there are any, and otherwise
_PRUNE, _SEEK = 60.0, 3600.0
#: a slot, and the number of a job among those that its worker holds
_Held = tuple[Slot, int]


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
            forget_loss(self._values, self._notice.instance)  # others may have told of it
        self._control.publish(self._notice.key, self._notice.facts(now))
        self._last = now
        if self._count in (0, _EVERYBODY_HAS):
            self._withdraw_predecessors()
        self._count += 1
        forget_stale_pause(self._board)
        return _PERIOD if self._count > 1 else _FIRST

    def withdraw(self) -> None:
        """Say that the pool has left, as it was told to. Raises ``StoreError``."""
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

        A process of this system can be seen. Of any other, which may be a second container of this name and place, only
        silence can tell: one that has published nothing since our pool began. A later steward leaves it: it is lost.
        """
        board = BoardName.parsed(Path(str(notice.get("board"))))
        if board.is_of_this_system:
            return not board.has_master
        return self._is_first_steward and self._count == _EVERYBODY_HAS and bool(notice["at"] <= self._began)


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
