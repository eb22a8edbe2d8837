"""Counts, in the meters, the attempt that a dead worker could not count itself, and the worker's exit."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from queuepool.board import meters as layout
from queuepool.board.board import Board, Killed, Slot
from queuepool.board.held_jobs import HeldJob, Stage
from queuepool.board.meters import SlotMeters

_LOST = layout.GIVEN_BACK + layout.AS_LOST
_LOSSES = {Killed.OVERDUE: "timeout", Killed.STALLED: "timeout", Killed.LEASE: "lease", Killed.MEMORY: "memory"}
_EXITS = {**_LOSSES, Killed.STOP: "stop", Killed.OVERWRITTEN: "crash"}


class DeadWorker:
    """One dead worker's meters. Those of another pool's board cannot be reached: nothing is counted there."""

    def __init__(self, board: Board, slot: Slot, status: int | None) -> None:
        self._slot = slot
        self._code = 0 if status is None else os.waitstatus_to_exitcode(status)
        self._meters = SlotMeters(board.meters, slot)
        self._meters.note_death()

    def intends(self, way: int) -> None:
        """Its attempt ends this way; the board does not show it yet."""
        self._meters.intend(way, self._loss)

    def count(self, held: Sequence[HeldJob]) -> None:
        """Count the attempt if it is not counted, by what the worker ``held`` when it died. Repeatable."""
        if self._meters.is_open:
            self._count_attempt(self._meters, held)
        self._meters.leave(self._exit)

    def _count_attempt(self, meters: SlotMeters, held: Sequence[HeldJob]) -> None:
        index = self._slot.current_index
        stage = held[index].stage if 0 <= index < len(held) else None
        if stage in (Stage.RESERVED, Stage.READING):  # it died before the board showed the attempt: it has not begun
            meters.forget()
            return
        if stage == Stage.DONE:
            meters.intend(layout.DONE)
        elif meters.intended is None:  # the store refused its verdict, or the board was overwritten
            meters.intend(_LOST, self._loss)
        meters.end(meters.run_time(self._slot.since))

    @property
    def _loss(self) -> str:
        return "timeout" if self._code == -signal.SIGALRM else _LOSSES.get(Killed(self._slot.killed), "crash")

    @property
    def _exit(self) -> str:
        if reason := _EXITS.get(Killed(self._slot.killed)):
            return reason
        return {-signal.SIGALRM: "timeout", -signal.SIGKILL: "killed"}.get(self._code, "crash")
