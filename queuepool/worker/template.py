"""The template: it imports the user's modules and forks the workers, which share its memory until they write to it.

It has no store and runs no job. A worker's slot without a pid is the master's request on the board. The worker forked
for it becomes the master's child, like any other.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Callable

from queuepool.board.board import Board, Role, Slot, State
from queuepool.unix import fork, proc
from queuepool.unix.exit_codes import BROKEN
from queuepool.unix.originals import sleep
from queuepool.unix.signals import STOPS, Mailbox
from queuepool.worker.boot import other_threads

#: seconds between checks of the board without a wake-up; seconds after which the master ends a stalled template
_CHECK_INTERVAL, _STALL_TIMEOUT = 1.0, 30.0
#: seconds between a new worker's checks whether the master has noted it
_MOMENT = 0.001
_log = logging.getLogger("queuepool")


class Template:
    """``slot`` is the template's own; ``worker`` is what a new worker runs."""

    def __init__(self, pool: str, board: Board, slot: Slot, worker: Callable[[Slot], int]) -> None:
        self._pool = pool
        self._board = board
        self._slot = slot
        self._worker = worker
        self._master = board.name.pid

    def run(self) -> None:
        """Fork the workers that the master requests, until a stop signal."""
        mailbox = Mailbox()
        mailbox.open()
        self._alive()
        _warn_of_threads()
        gc.collect()
        gc.freeze()  # pages that the collector does not touch stay shared
        self._slot.state = State.IDLE
        proc.show(f"queuepool: template [{self._pool}] idle")
        while True:
            self._alive()
            for slot in self._wanted():
                self._fork(slot)
                self._alive()
            if mailbox.next(_CHECK_INTERVAL) in STOPS:
                return

    def _alive(self) -> None:
        self._slot.deadline = time.monotonic() + _STALL_TIMEOUT

    def _wanted(self) -> list[Slot]:
        """The slots that the master wants filled; it keeps one template for each generation."""
        workers = self._board.of(Role.WORKER)
        return [one for one in workers if one.generation == self._slot.generation and not (one.pid or one.dead)]

    def _fork(self, slot: Slot) -> None:
        life = slot.incarnation

        def note(pid: int) -> None:
            slot.pid = pid

        try:
            fork.spawn_for_parent(lambda: self._begin(slot, life), self._master, note)
        except OSError as error:
            _log.error("cannot fork: %s; next try in %gs", error.strerror, _CHECK_INTERVAL)

    def _begin(self, slot: Slot, life: int) -> int:
        """The new worker: it starts once the master has noted it; the master kills workers that it does not know."""
        fork.signal_other(self._master, signal.SIGUSR1, lambda pid: os.getppid() == pid)
        while (slot.pid, slot.incarnation, os.getppid()) == (os.getpid(), life, self._master):
            if slot.start_time:
                return self._worker(slot)
            sleep(_MOMENT)
        return BROKEN


def _warn_of_threads() -> None:
    if others := other_threads():
        _log.warning(
            "importing the modules started threads=%d: threads do not survive a fork, so no worker has them", others
        )
