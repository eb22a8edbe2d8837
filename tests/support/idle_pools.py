"""A parent of real masters, whose workers and stewards do nothing: a pool that costs milliseconds.

``python -m tests.support.idle_pools FOLDER NAME...``. A file ``FOLDER/slow-NAME`` keeps that pool's workers from coming
to work as long as it is there, and ``busy-NAME`` from leaving; with ``FOLDER/broken-NAME`` their boot fails, and with
``FOLDER/dying-NAME`` its next stewards end at once, until the master gives up.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from queuepool import log
from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.master.loop import Master
from queuepool.master.service_manager import Herald, NotifySocket
from queuepool.pool.parent import Parent
from queuepool.unix import proc, signals
from queuepool.unix.exit_codes import BOOT, BROKEN, LEFT

#: seconds between two looks for a file
_MOMENT = 0.05


def settings_of(folder: Path, name: str) -> PoolSettings:
    return PoolSettings(name=name, workers=1, runtime_dir=folder, has_neighbours=True, give_up=5.0)


def main(folder: Path, names: list[str]) -> int:
    signals.reset_inherited(blocked=signals.HANDLED)
    herald = Herald(NotifySocket.taken_from(os.environ))
    return Parent([settings_of(folder, name) for name in names], herald).run(run_master)


def run_master(settings: PoolSettings) -> int:
    log.setup(settings, "master", write_timeout=0.0)
    runtime = RuntimeDir(settings)
    runtime.claim()
    board = runtime.new_board(8, room_for=3)
    board.header.facts = board.header.facts._replace(since=time.time(), target=settings.workers)
    board.header.beat = time.monotonic()
    idle = Idle(board, runtime.path.parent, settings.name)
    entry_points = {Role.WORKER: idle.worker, Role.STEWARD: idle.steward}
    return Master(settings, board, runtime, entry_points, Herald(NotifySocket())).run()


@dataclass(frozen=True)
class Idle:
    board: Board
    folder: Path
    name: str

    def worker(self, slot: Slot, paused: bool) -> int:
        mailbox = signals.Mailbox()
        while self._is_told("slow"):
            if mailbox.next(_MOMENT) == signal.SIGTERM:
                return LEFT
        if self._is_told("broken"):
            return BOOT
        self._idle(slot, State.PAUSED if paused else State.IDLE)
        while self._is_told("busy"):
            mailbox.next(_MOMENT)
        return LEFT

    def steward(self, slot: Slot, paused: bool) -> int:
        if self._is_told("dying"):
            return BROKEN
        self.board.header.restart_known = 1
        self._idle(slot, State.RUNNING)
        return LEFT

    def _is_told(self, what: str) -> bool:
        return (self.folder / f"{what}-{self.name}").exists()

    def _idle(self, slot: Slot, state: State) -> None:
        slot.state = state
        proc.show(f"queuepool: {Role(slot.role).name.lower()} [{self.name}] {state.name.lower()}")
        while signals.Mailbox().next(60.0) != signal.SIGTERM:
            pass
        slot.exited_cleanly = 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
