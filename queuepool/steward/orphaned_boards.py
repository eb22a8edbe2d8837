"""Boards whose master was killed. A steward looks after its own board, and after others whose steward is dead too.

So a killed master's workers finish their jobs with their leases renewed and their deadlines enforced, and what they
leave is settled, whether or not a new master comes. On a board of another store, deadlines are enforced but nothing
is settled: its receipts are invalid in our store, so its jobs wait for their leases or for that store's next pool.

A runtime directory may outlive its system (a volume, a reboot). The pids on a board of another boot or container belong
to other processes here: none of them is signalled, and the board's jobs go back unless they are looked after there.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from queuepool.board.blame import Blame
from queuepool.board.board import Board, BoardName, Killed, Role, Slot, State, is_guarded, overdue, remove
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.unix import fork, proc, stray_processes

#: seconds between the guard's rounds while there are orphans, and while there are none
_TICK, _IDLE = 0.25, 1.0
_log = logging.getLogger("queuepool")


class OrphanedBoards:
    """The orphaned boards as one steward sees them; ``own`` is the board of its pool."""

    def __init__(self, own: Board, runtime: RuntimeDir, blame: Blame) -> None:
        self.own = own
        self._runtime = runtime
        self._blame = blame
        self._others: dict[Path, Board] = {}
        self._warned: set[Path] = set()

    def boards(self) -> list[Board]:
        """The orphaned boards whose jobs this steward looks after."""
        return [board for board in self.orphaned() if board is self.own or self._is_of_our_store(board)]

    def orphaned(self) -> list[Board]:
        """The boards, of any store, that neither a master nor another steward looks after."""
        paths = [path for path in self._runtime.board_paths() if path != self.own.path]
        self._others = {path: self._others.get(path) or self._open(path) for path in paths}  # type: ignore[misc]
        known, is_orphaned = [board for board in self._others.values() if board], self.is_orphaned()
        others = [board for board in known if self._is_alone(board)] if self._is_in_charge(known, is_orphaned) else []
        return [*([self.own] if is_orphaned else []), *others]

    def all(self) -> list[Board]:
        """Our own board and the orphaned ones whose jobs this steward looks after; each once."""
        return [self.own, *(board for board in self.boards() if board is not self.own)]

    def is_orphaned(self) -> bool:
        """Whether our own master is dead."""
        return not self.own.has_master

    def _is_in_charge(self, others: Sequence[Board], is_orphaned: bool) -> bool:
        """Whether this steward adopts abandoned boards: any with a living master, else only the first board's."""
        return not is_orphaned or not any(
            board.has_master or (board.has_steward and board.path < self.own.path) for board in others
        )

    def _is_alone(self, board: Board) -> bool:
        if self._blame.is_deadly(board.path.name):
            _log.error(
                "removing %s: it kept crashing the steward; its jobs wait for their leases to end", board.path.name
            )
            board.unlink()
            return False
        with self._blame.during(board.path.name):
            return not board.has_master and not board.has_steward

    def _is_of_our_store(self, board: Board) -> bool:
        is_ours = board.header.store == self._runtime.store
        if not is_ours and board.path not in self._warned:
            self._warned.add(board.path)
            _log.warning(words_for(board.path.name))
        return is_ours

    def _open(self, path: Path) -> Board | None:
        with suppress(OSError):  # it is gone by now, or too many files are open: the next round looks again
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                remove(path)  # it could make us delete or fail any job
                return None
            try:
                return Board.open(path, write=True)
            except (ValueError, PermissionError):
                _end_unreadable(path)
        return None


def _end_unreadable(path: Path) -> None:
    """Remove a board of another version, or one that was overwritten; its jobs wait for their leases to end.

    As long as its own steward runs, that renews the leases of its workers, and settles and removes it. Without one they
    would run on while others get their jobs.
    """
    if is_guarded(path):
        return
    if BoardName.parsed(path).is_of_this_system and (killed := stray_processes.kill_all_on(path.name)):
        _log.warning("%s cannot be read: killed what still ran of its pool, processes=%d", path.name, killed)
    remove(path)


def left_by_others(runtime: RuntimeDir) -> list[str]:
    """The names of the boards in this directory that killed pools on other stores have left."""
    return [path.name for path in runtime.board_paths() if _is_left_by_another(path, runtime.store)]


def words_for(name: str) -> str:
    """The warning about such a board."""
    until = "until their leases end or that pool starts again"
    return f"{name} was left by a pool on a store other than the configured one: its jobs wait {until}"


def _is_left_by_another(path: Path, store: str) -> bool:
    try:
        board = Board.open(path)
    except (OSError, ValueError):
        return False
    return board.header.store != store and not board.has_master


class OrphanGuard:
    """Kills orphans past their deadline or lease, as they have no master; and all of them when a stop's time is over.

    ``grace``: seconds that a worker may be past its deadline. ``margin``: seconds before a lease's end at which its
    worker is killed, since the store may keep the steward waiting.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, grace: float, margin: float) -> None:
        self._orphaned_boards = orphaned_boards
        self._grace = grace
        self._margin = margin
        self._described: set[tuple[int, int]] = set()

    def run(self, now: float) -> float:
        self._end_overwritten()
        orphans = self.orphans()
        self._orphaned_boards.own.header.orphans = len(orphans)  # the master's stop waits for them
        for slot in orphans:
            if why := self._is_unwanted(now) or overdue(slot, time.monotonic(), self._grace, self._margin):
                _kill(slot, why)
        return _TICK if orphans else _IDLE

    def _end_overwritten(self) -> None:
        """Kill workers of our own dead master that no slot describes any more, because a job has overwritten the board.

        Their leases can no longer be renewed. A living master notices this itself.
        """
        if not self._orphaned_boards.is_orphaned():
            return
        described = {(slot.pid, slot.start_time) for slot in self._orphaned_boards.own.of(Role.WORKER)}
        for pid, started in self._described - described:
            if proc.is_alive(pid, started):
                fork.kill_other(pid, lambda pid, started=started: proc.is_alive(pid, started))  # type: ignore[misc]
                _log.warning("pid=%d killed: %s", pid, Killed.OVERWRITTEN.name)
        self._described = described

    def _is_unwanted(self, now: float) -> Killed | None:
        """The reason, once the master's stop has waited long enough: after it no steward would look after them."""
        header = self._orphaned_boards.own.header
        return Killed.STOP if header.state == State.DRAINING and 0.0 < header.end_orphans_at <= now else None

    def orphans(self) -> list[Slot]:
        """The living workers of killed masters that no other steward looks after."""
        boards = self._orphaned_boards.orphaned()
        return [slot for board in boards for slot in board.of(Role.WORKER) if is_living(board, slot)]


def _kill(slot: Slot, why: Killed) -> None:
    slot.killed = why
    fork.kill_other(slot.pid, lambda pid: proc.is_alive(pid, slot.start_time))
    _log.warning("worker=%d pid=%d killed: %s", slot.number, slot.pid, why.name)


def is_living(board: Board, slot: Slot) -> bool:
    """Whether the slot's process is alive."""
    return not slot.dead and board.has_living(slot)
