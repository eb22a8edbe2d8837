"""A pool's pidfile, whose lock allows one master only."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from queuepool.board.runtime_base import refusing
from queuepool.errors import ConfigError, PoolRunning
from queuepool.unix import file_lock

_MOMENT = 0.1


class Pidfile:
    """The lock decides, not the text: no child inherits it, and it ends with the process, however that ends.

    ``running`` makes the error for a lock that another process holds, from that process's pid.
    """

    def __init__(self, path: Path, running: Callable[[int], PoolRunning]) -> None:
        self.path = path
        self._running = running
        self._fd = -1

    def claim(self, make_directory: Callable[[], None]) -> None:
        """Lock the file and write our pid, in a directory made for it. Raises ``PoolRunning`` and ``ConfigError``."""
        make_directory()
        fd = self._locked_soon()
        while not self._is_in_place(fd):  # its last owner removed it while we took the lock
            os.close(fd)
            make_directory()
            fd = self._locked_soon()
        with refusing("runtime_dir", self.path):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self.close()  # a former one, which was removed
        self._fd = fd

    def lock(self) -> None:
        """Take the lock now. Raises as ``claim``."""
        self._fd = self._locked()

    @property
    def is_ours(self) -> bool:
        """Whether we hold the lock on the file that is in its place."""
        return self._is_in_place(self._fd)

    def holder(self) -> int:
        """The pid of the process that holds the lock; 0 = none, or one in another container. Raises ``OSError``."""
        fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with _closing(fd):
            return file_lock.holder(fd) or 0

    def remove(self) -> None:
        """Remove the file; the lock stays."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give up the lock; in a child, the parent keeps it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

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
        with refusing("runtime_dir", self.path):
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            os.close(fd)
            raise ConfigError("runtime_dir", f"{self.path} is not a file of yours: remove it")
        try:
            file_lock.lock(fd)
        except OSError as error:
            with _closing(fd):
                raise self._running(file_lock.holder(fd) or 0) from error
        return fd

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self.path.lstat())
        except OSError:
            return False


@contextmanager
def _closing(fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(fd)
