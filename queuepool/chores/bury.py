"""Settle, at once, every job that a dead worker held; also of the boards that a killed master left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from queuepool import events, mourning, proc
from queuepool.board import Board, Killed, Role, Slot
from queuepool.errors import AttemptLost, JobTimedOut, WorkerDied
from queuepool.hand import Held, Stage
from queuepool.limits import BOOT
from queuepool.listeners import Listeners
from queuepool.payload import decode
from queuepool.runtime import Runtime
from queuepool.settle import Settler, facts_of
from queuepool.stores.base import Lease, QueueStore
from queuepool.verdict import Fail, Policy, judge

_PERIOD = 1.0
_MOST_TRACE = 64 * 1024


class Bury:
    """Reads the obituaries. The master wakes the steward for each; the period is for those it could not."""

    def __init__(
        self,
        board: Board,
        inherited: Sequence[Board],
        runtime: Runtime,
        store: QueueStore,
        settler: Settler,
        listeners: Listeners,
        queues: Sequence[str],
    ) -> None:
        self._board = board
        self._inherited = list(inherited)
        self._runtime = runtime
        self._store = store
        self._settler = settler
        self._listeners = listeners
        self._queues = queues
        self._last_boot_trace = ""

    def run(self, now: float) -> float:
        for slot in self._board.slots:
            if slot.dead and slot.settled_life != slot.life:
                self._bury(slot, slot.status)
        for board in list(self._inherited):
            self._bury_inherited(board)
        return _PERIOD

    def _bury_inherited(self, board: Board) -> None:
        """A living orphan still finishes its job; the board goes when the last one is settled."""
        held = [slot for slot in board.slots if slot.role != Role.FREE and slot.settled_life != slot.life]
        for slot in held:
            if not proc.is_alive(slot.pid, slot.born):
                self._bury(slot, slot.status if slot.dead else None)
        if all(slot.settled_life == slot.life for slot in held):
            board.unlink()
            self._inherited.remove(board)

    def _bury(self, slot: Slot, status: int | None) -> None:
        """``status`` is ``None`` when nobody saw it die."""
        held = slot.hand.held()
        trace = self._trace(slot)
        if slot.asked:
            # It died asking: what the answer would have brought is known by its tag alone.
            since = max(time.monotonic() - slot.asked, 0.0)
            self._store.reclaim(self._queues, slot.tag, since, [one.lease for one in held])
        for one in held:
            self._settle(slot, one, status, trace)
        self._tell(slot, status, trace, held)
        slot.settled_life = slot.life

    def _settle(self, slot: Slot, one: Held, status: int | None, trace: str) -> None:
        if one.stage == Stage.DONE:
            self._settler.delete([one.lease])
        elif one.stage == Stage.RESERVED or slot.killed == Killed.STOP:
            self._settler.give_back(one.lease)
        elif slot.killed != Killed.LEASE:  # else it may be somebody else's by now; its end stages it
            self._rule(slot, one.lease, _error_of(slot, status, trace))

    def _rule(self, slot: Slot, lease: Lease, error: AttemptLost) -> None:
        payload, policy = decode(lease.receipt), Policy.from_text(slot.policy)
        facts = facts_of(payload, lease.queue)
        if isinstance(error, JobTimedOut):
            self._listeners.tell(events.JobTimedOut(facts, error.trace))
        else:
            self._listeners.tell(events.JobLost(facts, str(error), error.trace))
        tallies = self._store.tallies(payload.id)
        verdict = judge(error, payload.attempts, policy, tallies, self._store.now())
        ours = self._settler.settle(lease, payload, verdict, error, _tally(error))
        if not ours:
            return
        if isinstance(verdict, Fail):
            slot.failed += 1
            mourning.leave(self._runtime.path, lease, error)
            self._board.header.mourned += 1
            self._board.header.orders += 1
        else:
            slot.released += 1

    def _tell(self, slot: Slot, status: int | None, trace: str, held: Sequence[Held]) -> None:
        if slot.left and not held:
            return
        code = None if status is None else os.waitstatus_to_exitcode(status)
        if code == BOOT:
            new = trace if trace != self._last_boot_trace else ""
            self._last_boot_trace = trace
            self._listeners.tell(events.BootFailed(slot.number, new))
        elif slot.killed != Killed.STOP:
            role = Role(slot.role).name.lower()
            self._listeners.tell(events.WorkerDied(role, slot.number, slot.pid, _cause(slot, status)))

    def _trace(self, slot: Slot) -> str:
        path = self._runtime.trace(slot.index)
        try:
            raw = path.read_bytes()
        except OSError:
            return ""
        return raw[:_MOST_TRACE].decode("utf-8", "replace").strip()


def _tally(error: AttemptLost) -> str:
    # Laravel counts a timeout as an exception.
    return "exceptions" if isinstance(error, JobTimedOut) else "crashes"


def _error_of(slot: Slot, status: int | None, trace: str) -> AttemptLost:
    cause = _cause(slot, status)
    name = f"{slot.job} (attempt {slot.attempt})"
    by_alarm = status is not None and os.waitstatus_to_exitcode(status) == -signal.SIGALRM
    if by_alarm or slot.killed == Killed.OVERDUE:
        return JobTimedOut(f"{name} ran past its deadline: {cause}", trace)
    return WorkerDied(f"{name}: its worker died: {cause}", trace)


def _cause(slot: Slot, status: int | None) -> str:
    if status is None:
        return "unseen, its master was gone"
    words = {
        Killed.OVERDUE: "killed by the master, the alarm did not end it",
        Killed.LEASE: "killed by the master, its lease could not be renewed",
        Killed.MEMORY: "killed by the master at memory_hard",
        Killed.STOP: "killed by the master to stop at once",
    }
    return words.get(Killed(slot.killed)) or proc.cause_of(status)
