"""Private PostgreSQL and MariaDB servers on unix sockets: no TCP, no configuration, no password.

As root they run as ``nobody``, since PostgreSQL refuses root. They end with the process that started them.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import CursorResult, Engine, create_engine, text
from sqlalchemy.pool import NullPool

from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.brands import USER, Brand, MariaDB, Postgres
from tests.support.eventually import eventually
from tests.support.pools import is_gone

#: where data directories are kept that were set up, to be copied: that takes a fifth of the time
_KEPT: list[Path] = []

__all__ = ["USER", "DatabaseServer", "MariaDB", "Postgres", "running"]


class DatabaseServer:
    """One running server; commits survive ``kill`` and ``start``."""

    def __init__(self, brand: Brand) -> None:
        self.brand = brand
        #: for a test's own server; on the session's, use ``database``
        self.url = brand.url(brand.first)
        self.log = Path(brand.folder, "log")
        self._numbers = count(1)
        self._spare: list[str] = []
        self._with_tables: list[tuple[str, str]] = []
        self._engines: dict[str, Engine] = {}
        self._set_up()
        self.start()

    @property
    def socket(self) -> str:
        return self.brand.socket

    def start(self) -> None:
        """Start the server; returns once it answers."""
        self.process = self._launch(["setpriv", "--pdeathsig", self.brand.orphaned_by.name, *self.brand.command()])
        with _all_or_nothing(self.process):
            eventually(lambda: self.process.poll() is not None or self._is_ready())
            assert self.process.poll() is None, self.log.read_text()
            self.execute(self.url, "SELECT 1")

    def kill(self) -> None:
        """Kill all its processes by SIGKILL, as when the machine dies."""
        _kill(self.process)

    def stop(self) -> None:
        """Stop it cleanly; does nothing if it has already ended."""
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(self.brand.ends_by)
        self.process.wait(timeout=60)

    def restart(self) -> None:
        self.stop()
        self.start()

    def engine(self, url: str) -> Engine:
        """An engine without a connection pool: no connection outlives a test."""
        address = url.replace("://", f"+{self.brand.driver}://", 1)
        return create_engine(address, poolclass=NullPool, connect_args=self.brand.plain)

    def execute(self, url: str, *lines: str) -> None:
        """Execute each statement outside of any transaction."""
        with self._statements(url) as run:
            for line in lines:
                run(line)

    @contextmanager
    def _statements(self, url: str) -> Iterator[Callable[[str], CursorResult[Any]]]:
        if url not in self._engines:  # one that is new asks the server what it can do
            self._engines[url] = self.engine(url)
        with self._engines[url].connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            yield lambda line: connection.execute(text(line))

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, emptied again at the end; clients connected then lose their connections."""
        name = self._spare.pop() if self._spare else self._create()
        url = self.brand.url(name)
        yield url
        self.execute(url, *self.brand.empty(name))
        self._spare.append(name)

    @contextmanager
    def tables(self) -> Iterator[str]:
        """The same with our tables, without rows: a tenth of a second cheaper than to create and drop them."""
        name, shape = self._with_tables.pop() if self._with_tables else self._create_tables()
        url = self.brand.url(name)
        yield url
        with self._statements(url) as run:
            if shape == run(self.brand.shape(name)).scalar_one():
                for line in self.brand.without_rows(name):
                    run(line)
                self._with_tables.append((name, shape))
                return
        self.execute(url, *self.brand.empty(name))  # the test has altered them
        self._spare.append(name)

    def _create_tables(self) -> tuple[str, str]:
        """The name of a database with tables, and their shape."""
        name = self._spare.pop() if self._spare else self._create()
        client = SqlClient(self.brand.url(name))
        migrate(client)
        client.close()
        with self._statements(self.brand.url(name)) as run:
            return name, run(self.brand.shape(name)).scalar_one()

    def _create(self) -> str:
        name = f"{USER}_{next(self._numbers)}"
        self.execute(self.url, f"CREATE DATABASE {name}")
        return name

    def _set_up(self) -> None:
        """Make its data directory, or copy that of another server of the kind."""
        data = Path(self.brand.folder, "data")
        with _kept(type(self.brand)) as kept:
            if kept and kept.exists():
                _copy(kept, data)
                return
            setting_up = self._launch(self.brand.set_up())
            with _all_or_nothing(setting_up):
                setting_up.wait()
            assert 0 == setting_up.returncode, self.log.read_text()
            if kept:
                _copy(data, kept)

    def _launch(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, **account(), cwd=self.brand.folder, stdout=log, stderr=log, start_new_session=True
            )

    def _is_ready(self) -> bool:
        """Whether it is ready, by its pid file: PyMySQL leaves a socket open when a connection is refused."""
        try:
            words = Path(self.brand.pid_file).read_text().split()
        except FileNotFoundError:
            return False
        return {str(self.process.pid), *self.brand.ready} <= set(words)


@contextmanager
def running(brand: type[Brand], durable: bool = False) -> Iterator[DatabaseServer]:
    """A running server in a folder of its own, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="queuepool-sql-") as folder:
        os.chown(folder, account().get("user", -1), account().get("group", -1))
        server = DatabaseServer(brand(folder, durable))
        try:
            yield server
        finally:
            server.stop()


def keep_in(folder: Path) -> None:
    """Set up each kind of server once, in whichever process of the run is the first; the folder goes with the run."""
    _KEPT[:] = [folder]


@contextmanager
def _kept(kind: type[Brand]) -> Iterator[Path | None]:
    """Where the data directory of this kind is or will be kept; others wait meanwhile."""
    if not _KEPT or kind not in (Postgres, MariaDB):
        yield None
        return
    path = _KEPT[0] / kind.__name__
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def _copy(one: Path, other: Path) -> None:
    """With its owner; whoever sees it sees all of it."""
    new = other.with_suffix(".new")
    subprocess.run(["cp", "-a", one, new], check=True)
    new.rename(other)


@contextmanager
def _all_or_nothing(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the server if its start is interrupted: half started, it would ignore a clean stop."""
    try:
        yield
    except BaseException:
        _kill(process)
        raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGSTOP)  # so that it forks no more
    family = psutil.Process(process.pid).children(recursive=True)
    for one in [*family, process]:  # the parent last: until then no dead child is reaped, and no living one leaves
        one.kill()
    process.wait()
    eventually(lambda: all(is_gone(one.pid) for one in family))


def account() -> dict[str, Any]:
    """The user that a server runs as."""
    if 0 != os.getuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
