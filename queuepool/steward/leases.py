"""Keep the pool's jobs on time: renew leases, so that jobs may outlast ``retry_after``, and stage jobs that are due.

Jobs that a worker cannot run are given back: those behind a slow or stuck job, and those whose reply it never got.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.held_jobs import AT_WORK, HeldJob, Stage
from queuepool.board.lanes import LaneOrder
from queuepool.payload.lease import Lease
from queuepool.settlement.flows import as_done
from queuepool.settlement.settler import Settler
from queuepool.settlement.verdict import RanBy
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import UNDER_WAY, QueueStore
from queuepool.unix.originals import sleep

#: seconds until a missing lease is checked once more
_RECHECK = 0.05
#: seconds after the server's whole second, when Laravel's delays end; Laravel announces no new delayed jobs
_AFTER_THE_SECOND = 0.002
#: seconds: run time after which the jobs behind are given back; pause while a worker is busy; pause otherwise
_SLOW, _TICK, _IDLE = 0.06, 0.03, 0.2
#: seconds between two looks for another server, which also a wake-up brings about
_REACHES = 1.0
#: after another server has taken over: seconds for which leases are renewed more often, and between two renewals
_LATE, _AGAIN = 1.0, 0.25
#: seconds until what a worker has written is visible to every process
_SETTLES = 0.002
#: a slot's incarnation, the number of its batch, and the index of the job that its worker runs
_Place = tuple[int, int, int]


class Renew:
    """Renews all leases that living workers hold, in one call every third of ``retry_after``.

    ``before`` is called before each such call.
    """

    def __init__(
        self,
        orphaned_boards: OrphanedBoards,
        store: QueueStore,
        retry_after: float,
        before: Callable[[], object] = lambda: None,
    ) -> None:
        self._orphaned_boards = orphaned_boards
        self._store = store
        self._retry_after = retry_after
        self._before = before
        self._missed: set[_Renewed] = set()

    def run(self, now: float) -> float:
        return self.through(self._store.renew)

    def through(self, renew: Callable[[Sequence[Lease]], Sequence[bool | None]], *, also_ended: bool = False) -> float:
        """Renew all by this call, ``also_ended`` those too that only wait to be settled. Returns as ``run``."""
        held = [
            entry
            for board in self._orphaned_boards.all()
            for slot in board.of(Role.WORKER)
            if also_ended or slot.lanes or slot.lease_end
            for entry in _leases_of(slot)
        ]
        if not held:
            return self._retry_after / 3
        self._before()
        sent_at = time.monotonic()
        renewed = renew([one.lease for one in held])
        missed = {one for one, is_ours in zip(held, renewed, strict=True) if is_ours is False and not one.is_over}
        unknown = {one.place for one, is_ours in zip(held, renewed, strict=True) if is_ours is None}
        for one in set(held) - missed:
            if one.place not in unknown:  # all that a worker holds by one hand is shown to end together
                one.lasts(sent_at + self._retry_after)
        for one in missed & self._missed:
            one.is_lost(sent_at)
        # Its worker may have just settled it: check once more.
        self._missed = missed
        return _RECHECK if missed else _REACHES if unknown else self._retry_after / 3


class Reassert:
    """Tells a server that was not known, as it may have been promoted, at once what the workers of the pool hold.

    Workers wait a moment before they ask another one for jobs. ``follow`` has a function called whenever another one
    answers than before, and by the first: the steward before this one may have died in the same moment. ``reassert``
    renews leases and takes their jobs again. ``wake`` has the steward's next round begin at once.

    A worker may have read the former server's last answer, and not yet shown it. So leases are renewed a few times
    more: a job that another worker has on the new server must not run on until it is time for that.
    """

    def __init__(
        self,
        store: QueueStore,
        renew: Renew,
        follow: Callable[[Callable[[], object]], object],
        reassert: Callable[[Sequence[Lease]], Sequence[bool | None]],
        wake: Callable[[], object],
    ) -> None:
        self._store = store
        self._renew = renew
        self._reassert = reassert
        self._wake = wake
        self._is_due = False
        #: until when a worker may show what it had from the former server (monotonic)
        self._late_until = 0.0
        follow(self._changed)

    def run(self, now: float) -> float:
        self._store.reach()  # unless the connection is open
        if self._is_due:
            # A job that has ended while there was no primary would run again, before its worker can settle it.
            pause = self._renew.through(self._reassert, also_ended=True)
            self._is_due, self._late_until = False, now + _LATE
        elif now < self._late_until:
            pause = self._renew.run(now)
        else:
            return _REACHES
        return min(pause, _AGAIN)

    def _changed(self) -> None:
        self._is_due = True
        self._wake()  # if another chore has found it: this one may be due in a second


class _Renewed(NamedTuple):
    """A lease that a living worker holds. ``turn``: of its lane, or of the worker's hand if it has none."""

    slot: Slot
    turn: int
    lease: Lease
    lane: int | None = None
    #: the job is done, and so is its hook: the worker may have deleted it already, with its request for the next jobs
    is_over: bool = False

    @property
    def place(self) -> tuple[Slot, int | None]:
        """Where it is shown when it ends."""
        return self.slot, self.lane

    def lasts(self, end: float) -> None:
        """Show that it ends then (monotonic)."""
        if self.lane is not None and self.slot.lanes:
            self.slot.lanes.renew(self.lane, self.turn, end)
        else:
            self.slot.renewed_end = end
            self.slot.renewed_hand = self.turn

    def is_lost(self, now: float) -> None:
        """Another worker may have the job: the master kills this worker now or, with lanes, the worker ends the job."""
        if self.lane is not None and self.slot.lanes:
            self.slot.lanes.order(self.lane, self.turn, LaneOrder.LOST)
        else:
            self.lasts(now)


def _leases_of(slot: Slot) -> list[_Renewed]:
    if slot.dead or slot.settled_incarnation == slot.incarnation:
        return []
    if slot.lanes:
        return [_Renewed(slot, one.turn, one.lease, one.lane) for one in slot.lanes.held()]
    hand_number, running = slot.hand_number, slot.current_index
    try:
        # What has begun is never given back while its worker lives.
        kept = AT_WORK if slot.wanted_back == hand_number else (Stage.RESERVED, *AT_WORK, Stage.DONE)
        leases = [
            _Renewed(slot, hand_number, one.lease, is_over=one.stage == Stage.DONE and one.number != running)
            for one in slot.hand.held()
            if one.stage in kept
        ]
    except (ValueError, OSError):
        return []  # its worker is writing it right now: a fresh lease needs no renewal
    return leases if slot.hand_number == hand_number else []


class StageDue:
    """Makes delayed and expired jobs ready: at every whole second of the store's clock, and when one is due between."""

    def __init__(self, store: QueueStore, queues: Sequence[str]) -> None:
        self._store = store
        self._queues = queues

    def run(self, now: float) -> float:
        staged = self._store.stage(self._queues)
        if staged.next_due == 0.0:
            return 0.0  # a batch was full: more is due already
        next_second = 1 - staged.now % 1 + _AFTER_THE_SECOND
        return next_second if staged.next_due is None else min(staged.next_due, next_second)


class _Stuck(NamedTuple):
    """A worker that has run one job for long: what it holds, and when it sent a reserve that has no reply yet."""

    slot: Slot
    #: when its pool began, in Unix seconds
    pool_since: float
    place: _Place
    tag: int
    held: list[HeldJob]
    reserve_sent_at: float

    def others(self, stage: Stage) -> list[Lease]:
        """The leases of the other held jobs at this stage."""
        return [one.lease for one in self.held if one.number != self.place[2] and one.stage == stage]

    @property
    def holds_more(self) -> bool:
        """Whether there is anything to take besides the running job."""
        return bool(self.held and (self.reserve_sent_at or self.others(Stage.RESERVED) or self.others(Stage.DONE)))


class GiveBack:
    """Gives back what a worker holds behind a slow or stuck job: other workers may be idle.

    It marks on the board what it wants back, waits a moment, and takes it unless the worker has moved on meanwhile.

    A worker first writes which job it starts, then checks for the mark (``HeldBatch.next_job``). So either it sees the
    mark and gives back the rest itself, or the steward sees that it has moved on. This needs no lock, which a dead
    process could keep.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, settler: Settler, lost_replies: LostReplies) -> None:
        self._orphaned_boards = orphaned_boards
        self._settler = settler
        self._lost_replies = lost_replies
        self._running_since: dict[Slot, tuple[_Place, float]] = {}
        self._given_back: dict[Slot, tuple[int, int]] = {}

    def run(self, now: float) -> float:
        self._lost_replies.look_again(now)
        boards = self._orphaned_boards.all()
        workers = [(slot, board) for board in boards for slot in board.of(Role.WORKER) if not slot.dead]
        stuck = [found for slot, board in workers if (found := self._stuck(slot, board, now))]
        for one in stuck:
            one.slot.wanted_back = one.place[1]
        if stuck:
            sleep(_SETTLES)
        for one in stuck:
            if _place(one.slot) == one.place:
                self._take(one)
                self._given_back[one.slot] = one.place[:2]
        return _TICK if any(slot.state == State.BUSY for slot, _ in workers) else _IDLE

    def _stuck(self, slot: Slot, board: Board, now: float) -> _Stuck | None:
        """What the slot's worker holds, if it has run one job for longer than others should wait."""
        if slot.state != State.BUSY or self._given_back.get(slot) == (place := _place(slot))[:2]:
            return None
        if self._running_since.get(slot, (None, 0.0))[0] != place:
            self._running_since[slot] = place, now
        if now - self._running_since[slot][1] < _SLOW:
            return None
        # Read everything before setting the mark: a later read may see the worker's next batch.
        found = _Stuck(slot, board.header.since, place, slot.tag, _held_at_a_job(slot), slot.reserve_sent_at)
        return found if found.holds_more and _place(slot) == place else None

    def _take(self, stuck: _Stuck) -> None:
        if stuck.reserve_sent_at:  # reserved last, so it goes back first
            self._lost_replies.take(stuck.tag, stuck.reserve_sent_at, [one.lease for one in stuck.held])
        self._settler.delete([self._recorded(lease, stuck) for lease in stuck.others(Stage.DONE)])
        self._settler.give_back_unstarted(stuck.others(Stage.RESERVED))
        self._settler.emit_noted()

    def _recorded(self, lease: Lease, stuck: _Stuck) -> Lease:
        """With the record of its attempt, if that is kept: its worker will be refused, or may die before it asks."""
        attempts, slot = self._settler.attempts, stuck.slot
        by = RanBy(slot.pid, slot.number, slot.generation, stuck.pool_since)
        done = as_done(lease)
        return attempts.done_by(done, by) if attempts else done


def _place(slot: Slot) -> _Place:
    return slot.incarnation, slot.hand_number, slot.current_index


def _held_at_a_job(slot: Slot) -> list[HeldJob]:
    """All jobs that the slot's worker holds, if it is running one of them; else none."""
    try:
        held = slot.hand.held()
    except (ValueError, OSError):
        return []  # its worker is writing it right now, so it is not stuck
    index = slot.current_index
    if not 0 <= index < len(held):
        return []
    # A done job may still run its hook or leftover tasks; until they end, the slot shows a lease.
    stage = held[index].stage
    is_running = stage in (Stage.RESERVED, Stage.READING, Stage.RUNNING) or (stage == Stage.DONE and slot.lease_end)
    return held if is_running else []  # else the job is over and its worker waits for the store


class LostReplies:
    """Gives back jobs that a worker reserved without reading the reply, because it died or hung.

    Only the worker's tag identifies them.
    """

    def __init__(self, store: QueueStore, settler: Settler, queues: Sequence[str], retry_after: float) -> None:
        self._store = store
        self._settler = settler
        self._lasts = retry_after + UNDER_WAY
        self._queues = queues
        self._due: list[tuple[float, int, float, Sequence[Lease]]] = []

    def take(self, tag: int, reserve_sent_at: float, known: Sequence[Lease]) -> None:
        """Give back what this tag reserved since ``reserve_sent_at`` (monotonic), except the leases that are ``known``.

        The caller must emit the noted events. Does nothing once the leases have ended: nothing is left to give back,
        and the tag may soon be another worker's. Raises ``StoreDown``.
        """
        now = time.monotonic()
        if not 0.0 <= now - reserve_sent_at < self._lasts:
            return
        self._store.retire(tag)
        self._reclaim(now, tag, reserve_sent_at, known)
        if self._store.commits_late:  # the server may commit its transaction after ours
            self._due.append((now + self._store.commits_late, tag, reserve_sent_at, known))

    def look_again(self, now: float) -> None:
        """Search again for jobs of transactions that were committed late. Raises ``StoreDown``."""
        for due in [due for due in self._due if now >= due[0]]:
            self._reclaim(now, *due[1:])
            self._due.remove(due)
            self._settler.emit_noted()

    def _reclaim(self, now: float, tag: int, reserve_sent_at: float, known: Sequence[Lease]) -> None:
        self._settler.reclaim(self._queues, tag, max(now - reserve_sent_at, 0.0) + UNDER_WAY, known)
