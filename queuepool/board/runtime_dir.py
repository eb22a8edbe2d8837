"""A pool's private directory: the pidfile and the boards."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from queuepool.board import runtime_base
from queuepool.board.about import FILE, About
from queuepool.board.board import Board
from queuepool.board.board_name import BoardName
from queuepool.board.pidfile import Pidfile
from queuepool.board.runtime_base import refusing
from queuepool.config.connections import identity_of
from queuepool.config.settings import PoolSettings
from queuepool.errors import ConfigError, NoRoom, NotRunning, PoolRunning

#: an empty file whose modification time is that of the master's last pass
ALIVE = "alive"


class RuntimeDir:
    """The directory of one pool on this host; it is refused unless it is ours with mode 0700.

    ``takes_any``: accept whatever pool runs there, not only the one that these settings describe.
    """

    def __init__(self, settings: PoolSettings, *, takes_any: bool = False) -> None:
        self.name = settings.name
        self._settings = settings
        self._takes_any = takes_any
        self.store = identity_of(settings.connection)
        self.path = ((settings.runtime_dir or runtime_base.base()) / settings.name).absolute()
        self._pidfile = Pidfile(self.path / "master.pid", self._running)

    def claim(self) -> None:
        """Become the only master. Raises ``PoolRunning``, ``NoRoom``, and ``ConfigError`` for an unsafe directory."""
        self._pidfile.claim(self._make)
        with refusing("runtime_dir", self.path / FILE):
            About.of(self._settings).write(self.path)

    def keep(self) -> bool:
        """Remain the only master even if the directory was removed; returns whether it had to be made again.

        Raises as ``claim``: another master may have been faster.
        """
        if self._pidfile.is_ours:
            return False
        self.claim()
        return True

    def close_in_child(self) -> None:
        """In a child: close the pidfile, so that a job that truncates all of its open files does not find it.

        The parent keeps the lock.
        """
        self._pidfile.close()

    def release(self) -> None:
        """Remove the pool's files, except for boards with unsettled jobs and the notes of deferred hooks."""
        if self._pidfile.is_ours:  # else another master's files are there, or nothing
            for unfinished in (*self.path.glob("draft.*"), *self.path.glob("taken.*")):  # its writer or reader is dead
                unfinished.unlink(missing_ok=True)
            (self.path / FILE).unlink(missing_ok=True)
            with suppress(OSError):  # a directory may be in its place
                (self.path / ALIVE).unlink()
            self._pidfile.remove()
        self._pidfile.close()
        with suppress(OSError):  # not empty, or the next master's
            self.path.rmdir()

    def master_pid(self) -> int:
        """The living master's pid, from the kernel's lock, not from the file.

        Raises ``NotRunning``, also when that master's pool is not the one that these settings mean.

        Raises ``ConfigError`` when the directory is another user's, who could make us signal any process. Root may use
        any user's.
        """
        try:
            self._check(self.path.lstat(), os.getuid() or None)
            pid = self._pidfile.holder()
        except OSError as error:
            raise NotRunning(self.name, self.path) from error
        if pid <= 0:
            raise NotRunning(self.name, self.path)
        found = self.about()
        if found and not self._takes_any and not found.is_meant_by(self._settings):
            raise NotRunning(self.name, self.path, found.in_place_of(self._settings, self.path))
        return pid

    def about(self) -> About | None:
        """What the pool in this directory records about itself; ``None`` when that cannot be read."""
        return About.read(self.path)

    def new_board(self, capacity: int, room_for: int = 0) -> Board:
        """A new board of this process, as of ``Board.create``. Raises ``NoRoom`` and ``ConfigError``."""
        path = self.path / str(BoardName.own())
        with refusing("runtime_dir", path):
            return Board.create(path, capacity, self.store, room_for=room_for)

    def board(self, *, write: bool = False) -> Board:
        """The running pool's board. Raises as ``master_pid``."""
        pid = self.master_pid()
        path = self.path / str(BoardName.of(pid))
        try:
            return Board.open(path, write=write) if path.exists() else _removed(path, pid, write=write)
        except (OSError, ValueError) as error:
            raise NotRunning(self.name, self.path) from error

    def board_paths(self) -> list[Path]:
        """The boards of this pool's masters, living and killed. (The files beside a board have one more dot.)"""
        return sorted(path for path in self.path.glob("board.*") if path.name.count(".") == 1)

    def remove_leftovers(self) -> None:
        """Remove what a killed master left, its pidfile and its directory, unless a new master has started."""
        with suppress(PoolRunning, ConfigError, NoRoom):
            self._pidfile.lock()
            self.release()

    def _make(self) -> None:
        with refusing("runtime_dir", self.path):
            for parent in reversed(self.path.parents):
                parent.mkdir(mode=0o755, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            found = self.path.lstat()
            runtime_base.check_parents(self.path.parent.resolve())
        self._check(found, os.getuid())

    def _check(self, about: os.stat_result, owner: int | None) -> None:
        if problem := runtime_base.problem_of(self.path, about, owner):
            raise ConfigError("runtime_dir", problem)

    def _running(self, pid: int) -> PoolRunning:
        found = self.about()
        return PoolRunning(self.name, pid, self.path, found.description if found else "")


def _removed(path: Path, pid: int, *, write: bool) -> Board:
    """The board at ``path``, which somebody has removed but its master has open. Raises ``OSError``."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(link).startswith(str(path)):
            return Board.opened(os.open(link, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC), path)
    raise FileNotFoundError(path)
