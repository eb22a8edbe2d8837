"""A pool's private directory: the pidfile that makes it the only one, and its boards."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from queuepool import proc
from queuepool.board import Board
from queuepool.errors import ConfigError, NotRunning, PoolRunning
from queuepool.settings import PoolSettings

_MOMENT = 0.1


class Runtime:
    """The directory of one pool on this host: 0700 and ours, or it is refused."""

    def __init__(self, settings: PoolSettings) -> None:
        self.name = settings.name
        self.path = (settings.runtime_dir or _base()) / settings.name
        self._pidfile = self.path / "master.pid"
        self._lock = -1

    def claim(self) -> None:
        """Become the one master. Raises ``PoolRunning``, and ``ConfigError`` when the directory is not safe."""
        self._make()
        fd = self._locked_soon()
        while not self._is_in_place(fd):  # its last owner removed it while we took the lock
            os.close(fd)
            self._make()
            fd = self._locked_soon()
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._lock = fd

    def release(self) -> None:
        """Leave nothing behind but the board of jobs that could not be settled."""
        self._pidfile.unlink(missing_ok=True)
        os.close(self._lock)
        with suppress(OSError):  # not empty, or claimed by the next one already
            self.path.rmdir()

    def master_pid(self) -> int:
        """The living master's pid. Raises ``NotRunning``."""
        pid = self._recorded_pid()
        if not pid or not self._is_locked():
            raise NotRunning(self.name, self.path)
        return pid

    def new_board(self, capacity: int) -> Board:
        return Board.create(self._board_of(os.getpid()), capacity)

    def board(self, *, write: bool = False) -> Board:
        """The running pool's. Raises ``NotRunning``."""
        try:
            return Board.open(self._board_of(self.master_pid()), write=write)
        except (OSError, ValueError) as error:
            raise NotRunning(self.name, self.path) from error

    def board_paths(self) -> list[Path]:
        """Of this pool's masters, the living one and killed ones."""
        # What lies beside a board has one dot more.
        return sorted(path for path in self.path.glob("board.*") if path.name.count(".") == 1)

    def clear_away(self) -> None:
        """What a killed master left: its pidfile and its directory, unless a new master has come."""
        with suppress(PoolRunning, ConfigError):
            self._lock = self._locked()
            self.release()

    def _board_of(self, pid: int) -> Path:
        # With its birth: in a container every master has the same pid.
        return self.path / f"board.{pid}-{proc.born(pid)}"

    def _make(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = self.path.lstat()
        except OSError as error:
            raise ConfigError("runtime_dir", f"{self.path}: {error.strerror}") from error
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
            raise ConfigError("runtime_dir", f"{self.path} must be a directory of yours with mode 0700")

    def _locked_soon(self) -> int:
        """A steward that clears away what its killed master left holds the lock for a moment."""
        until = time.monotonic() + _MOMENT
        while True:
            try:
                return self._locked()
            except PoolRunning:
                if time.monotonic() >= until:
                    raise
            time.sleep(_MOMENT / 10)

    def _locked(self) -> int:
        # Inherited by no child and gone with the process, however it ends: the lock, not the file, decides.
        try:
            fd = os.open(self._pidfile, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError("runtime_dir", f"{self._pidfile}: {error.strerror}") from error
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise PoolRunning(self.name, self._recorded_pid()) from error
        return fd

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._pidfile.lstat())
        except FileNotFoundError:
            return False

    def _recorded_pid(self) -> int:
        try:
            return int(self._pidfile.read_text())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return 0

    def _is_locked(self) -> bool:
        try:
            fd = os.open(self._pidfile, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False


def _base() -> Path:
    if os.getuid() == 0:
        return Path("/run/queuepool")
    if given := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(given) / "queuepool"
    base = Path(tempfile.gettempdir()) / f"queuepool-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    about = base.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise ConfigError("runtime_dir", f"{base} is not yours alone; set runtime_dir")
    return base
