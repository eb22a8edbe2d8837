"""Creates and opens SQLite files, and checks whether a path still leads to the file that a connection has open."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from queuepool.errors import StoreDenied, StoreDown, StoreUnfit
from queuepool.unix.originals import sleep

_log = logging.getLogger("queuepool")
_MADE = (
    "no url is set, so the queue is the new file {}. A pool finds it if it is started in this directory, or with the "
    "same configuration (QUEUEPOOL_CONFIG)"
)
#: the mode of a new file, apart from the umask
_MODE = 0o660
#: seconds between two tries while another connection has the lock
_PAUSE = 0.001
_ELSEWHERE = "say where the queue is, url = sqlite:////PATH"
#: device and inode; ``None``: no such file
Identity = tuple[int, int] | None


class FairCursor(sqlite3.Cursor):
    """Tries a statement again and again while another connection has the lock.

    SQLite's own wait has ever longer pauses, up to 0.1 s: those that came later get the lock first, and the first one
    may never get it. Here all pauses are the same.
    """

    connection: FileConnection

    def execute(self, statement: str, parameters: Any = ()) -> FairCursor:
        """Like that of ``sqlite3``, apart from the wait."""
        begun = time.monotonic()
        while True:
            try:
                return super().execute(statement, parameters)
            except sqlite3.OperationalError as error:
                # Errors of Python's own module have no code.
                is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() - begun > self.connection.timeout:
                    raise
            sleep(_PAUSE)


class FileConnection(sqlite3.Connection):
    """A connection that knows its file: SQLite goes on using a deleted or replaced file, so we must check.

    ``file`` and ``log`` are what this connection has open: the file itself, and its write-ahead log if it has one.
    ``timeout``: seconds to wait for another writer.
    """

    path: Path
    name: str
    timeout: float
    file: Identity = None
    log: Identity = None
    #: whether it goes on with a file that has lost its name
    is_retired = False

    def cursor(self, factory: Any = FairCursor) -> Any:
        """Like that of ``sqlite3``, with another default."""
        return super().cursor(factory)

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        """Like that of ``sqlite3``, which would not ask for a cursor by the method above."""
        return self.cursor().execute(statement, parameters)

    @property
    def is_current(self) -> bool:
        """Whether the path still leads to this file. One system call, before each verb."""
        return identity_of(self.name) == self.file

    def retire(self) -> None:
        """Call when the file has lost its name: complete it, and remove its log from beside the new file of that name.

        SQLite takes any log beside a file for that file's own, and would apply the old one to the new file.
        """
        self.is_retired = True
        self.complete()
        with _alone_in(self.path.parent):
            if self.log and identity_of(_beside(self.path, "-wal")) == self.log and not self.is_current:
                for end in ("-wal", "-shm"):
                    _beside(self.path, end).unlink(missing_ok=True)

    def complete(self) -> None:
        """Write the log's content into the file, so that it is complete wherever it was moved."""
        begun = time.monotonic()
        with suppress(sqlite3.Error):
            while self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # others are in the way
                if time.monotonic() - begun > self.timeout:
                    return
                sleep(_PAUSE)


def connect(path: Path, *, durable: bool, timeout: float, create: Sequence[str], migrate: str) -> FileConnection:
    """A connection in autocommit. Raises ``StoreDenied`` for a missing file that it must not or cannot create, and
    ``StoreUnfit`` if that is because its directory is not writable.

    ``create``: the statements that create the file. ``durable``: a push survives a power failure. ``timeout``: seconds
    to wait for another writer. ``migrate``: the command that would create the file. Raises ``StoreDown`` while the file
    is being replaced.
    """
    if not path.exists():
        if not path.parent.is_dir():
            raise StoreDenied(f"there is no directory {path.parent}")
        if not create:
            raise StoreDenied(f"there is no file {path}: create it with `{migrate}`")
        if not os.access(path.parent, os.W_OK):
            raise StoreUnfit(f"{path.parent} cannot be written to: {_ELSEWHERE}")
        if _make(path, create) and durable:  # a producer in the wrong directory would wait in vain
            _log.warning("%s", _MADE.format(path))
    if path.is_dir():
        raise StoreDenied(f"{path} is a directory: {_ELSEWHERE}")
    connection = _known(path, timeout)
    # A push that has returned survives a power failure. A worker's settlement may not: then the job runs again.
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    return connection


def file_remedy(code: str) -> str:
    """The remedy for SQLite's error of this name if it is about the file; else empty."""
    if re.fullmatch("SQLITE_(READONLY|PERM|CANTOPEN).*", code):
        return f"uid {os.geteuid()} must be able to write to it and to its directory, or {_ELSEWHERE}"
    return f"move it away, or {_ELSEWHERE}" if code == "SQLITE_NOTADB" else ""


def identity_of(path: Path | str) -> Identity:
    """Which file is at this path; ``None`` if there is none. Raises ``OSError``."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _known(path: Path, timeout: float) -> FileConnection:
    """Open the file, and record which file it is."""
    before = identity_of(path)
    with ExitStack() as undo:
        connection = _open(path, "rw", timeout)
        undo.callback(connection.close)
        connection.file = before
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]  # which opens the log
        connection.log = identity_of(_beside(path, "-wal")) if mode == "wal" else None
        if not connection.is_current:
            raise StoreDown(f"the file {path} is being replaced")
        undo.pop_all()
    return connection


def _make(path: Path, statements: Sequence[str]) -> bool:
    """Create the file with its tables, completely or not at all; ``False`` if another process was faster."""
    draft = path.with_name(f"{path.name}.new-{secrets.token_hex(4)}")
    try:
        # The log gets the same mode. Payloads are private: readable by the group if the umask allows it.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _MODE))
        with closing(_open(draft, "rw", 1.0)) as connection:
            # In WAL mode, readers and the writer do not block each other. The file keeps the mode.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(";".join(statements))
        with _alone_in(path.parent):
            if not path.exists():
                _set_aside_leftovers(path)
                with suppress(FileExistsError):
                    os.link(draft, path)
                    return True
            return False
    finally:
        draft.unlink(missing_ok=True)


def _set_aside_leftovers(path: Path) -> None:
    """Remove what a vanished file left beside its name, but keep its log, which may be all that is left."""
    _beside(path, "-shm").unlink(missing_ok=True)
    for end in ("-wal", "-journal"):
        leftover = _beside(path, end)
        with suppress(FileNotFoundError):
            if leftover.stat().st_size:
                leftover.rename(_beside(leftover, f".left-{secrets.token_hex(4)}"))
            else:
                leftover.unlink()


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Lock the directory: only one of our processes at a time removes files there, so its checks stay valid."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _open(path: Path, mode: str, timeout: float) -> FileConnection:
    uri = f"{path.as_uri()}?mode={mode}"
    options: dict[str, Any] = {"isolation_level": None, "check_same_thread": False, "factory": FileConnection}
    connection: FileConnection = sqlite3.connect(uri, uri=True, timeout=0.0, **options)
    connection.path, connection.name, connection.timeout = path, str(path), timeout
    return connection
