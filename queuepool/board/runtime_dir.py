"""A pool's private directory: the pidfile, whose lock allows one master only, and the boards."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from queuepool.board import runtime_base
from queuepool.board.about import FILE, About
from queuepool.board.board import Board
from queuepool.config.connections import identity_of
from queuepool.config.settings import PoolSettings
from queuepool.errors import ConfigError, NoRoom, NotRunning, PoolRunning
from queuepool.unix import proc

_MOMENT = 0.1
#: the kernel's struct flock: kind, whence, start, length, pid
_FLOCK = struct.Struct("hhlli0l")


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
        self._pidfile = self.path / "master.pid"
        self._lock = -1

    def claim(self) -> None:
        """Become the only master. Raises ``PoolRunning``, ``NoRoom``, and ``ConfigError`` for an unsafe directory."""
        self._make()
        fd = self._locked_soon()
        while not self._is_in_place(fd):  # its last owner removed it while we took the lock
            os.close(fd)
            self._make()
            fd = self._locked_soon()
        with _refusing("runtime_dir", self._pidfile):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
            About.of(self._settings).write(self.path)
        self._lock = fd

    def keep(self) -> bool:
        """Remain the only master even if the directory was removed; returns whether it had to be made again.

        Raises as ``claim``: another master may have been faster.
        """
        if self._is_in_place(self._lock):
            return False
        former = self._lock
        self.claim()
        os.close(former)
        return True

    def close_in_child(self) -> None:
        """In a child: close the pidfile, so that a job that truncates all of its open files does not find it.

        The parent keeps the lock.
        """
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def release(self) -> None:
        """Remove the pool's files, except for boards with unsettled jobs and the notes of deferred hooks."""
        if self._is_in_place(self._lock):  # else another master's files are there, or nothing
            for unfinished in (*self.path.glob("draft.*"), *self.path.glob("taken.*")):  # its writer or reader is dead
                unfinished.unlink(missing_ok=True)
            (self.path / FILE).unlink(missing_ok=True)
            self._pidfile.unlink(missing_ok=True)
        os.close(self._lock)
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
            fd = os.open(self._pidfile, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise NotRunning(self.name, self.path) from error
        with _closing(fd):
            pid = _holder(fd)
        if pid <= 0:
            raise NotRunning(self.name, self.path)
        found = self.about()
        if found and not self._takes_any and not found.is_meant_by(self._settings):
            raise NotRunning(self.name, self.path, f"{found.description}: {found.hint(self.path)} means it")
        return pid

    def about(self) -> About | None:
        """What the pool in this directory records about itself; ``None`` when that cannot be read."""
        return About.read(self.path)

    def new_board(self, capacity: int, room_for: int = 0) -> Board:
        """A new board of this process, as of ``Board.create``. Raises ``NoRoom`` and ``ConfigError``."""
        path = self._board_of(os.getpid())
        with _refusing("runtime_dir", path):
            return Board.create(path, capacity, self.store, room_for=room_for)

    def board(self, *, write: bool = False) -> Board:
        """The running pool's board. Raises as ``master_pid``."""
        pid = self.master_pid()
        path = self._board_of(pid)
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
            self._lock = self._locked()
            self.release()

    def _board_of(self, pid: int) -> Path:
        # With its start time: in a container, every master has the same pid.
        return self.path / f"board.{pid}-{proc.start_time(pid)}"

    def _make(self) -> None:
        with _refusing("runtime_dir", self.path):
            for parent in reversed(self.path.parents):
                parent.mkdir(mode=0o755, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            found = self.path.lstat()
            runtime_base.check_parents(self.path.parent.resolve())
        self._check(found, os.getuid())

    def _check(self, about: os.stat_result, owner: int | None) -> None:
        if not stat.S_ISDIR(about.st_mode) or about.st_mode & 0o077 or owner not in (None, about.st_uid):
            raise ConfigError("runtime_dir", f"{self.path} must be a directory of yours with mode 0700")

    def _locked_soon(self) -> int:
        """Take the lock; wait for up to ``_MOMENT`` seconds, since a steward that clears away may hold it briefly."""
        until = time.monotonic() + _MOMENT
        while True:
            try:
                return self._locked()
            except PoolRunning:
                if time.monotonic() >= until:
                    raise
            time.sleep(_MOMENT / 10)

    def _locked(self) -> int:
        # The lock decides, not the file: no child inherits it, and it ends with the process, however that ends.
        with _refusing("runtime_dir", self._pidfile):
            fd = os.open(self._pidfile, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            os.close(fd)
            raise ConfigError("runtime_dir", f"{self._pidfile} is not a file of yours: remove it")
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            with _closing(fd):
                found = self.about()
                raise PoolRunning(self.name, _holder(fd), self.path, found.description if found else "") from error
        return fd

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._pidfile.lstat())
        except OSError:
            return False


@contextmanager
def _refusing(key: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` into a ``ConfigError``, or into ``NoRoom``, after which another start may succeed."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(where) from error
        raise ConfigError(key, f"{where}: {error.strerror}") from error


def _removed(path: Path, pid: int, *, write: bool) -> Board:
    """The board at ``path``, which somebody has removed but its master has open. Raises ``OSError``."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(link).startswith(str(path)):
            return Board.opened(os.open(link, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC), path)
    raise FileNotFoundError(path)


@contextmanager
def _closing(fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(fd)


def _holder(fd: int) -> int:
    """The pid of the process that has locked this file; 0 = no process, or one in another container."""
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)))
    return 0 if kind == fcntl.F_UNLCK else int(pid)
