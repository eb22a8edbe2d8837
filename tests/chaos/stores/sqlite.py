"""SQLite: one file for every process, where mounting is allowed on a small file system, which can be full."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.chaos import at_sql, at_sqlite, disks
from tests.chaos.stores.base import Nemeses
from tests.chaos.stores.tables import InTables, Tables

_SIZE = "64m"


class SqliteStore(InTables):
    """There is no server: no process counts its clients, and its commands are reads and writes of a file."""

    prefix, counts_after = "", 0.2

    def __init__(self, folder: Path, password: str) -> None:
        self.disk = folder / "disk"
        self.path = self.disk / "here" / "queue.db"
        self.url = self.far = f"sqlite:///{self.path}"
        self.nemeses: Nemeses = {**at_sql.NEMESES, **at_sqlite.NEMESES}
        self.tables = Tables(create_engine(f"sqlite+pysqlite:///{self.path}", poolclass=NullPool))

    def start(self) -> None:
        if disks.mount(self.disk, _SIZE):
            self.nemeses |= at_sqlite.ON_A_DISK_OF_ITS_OWN
        self.path.parent.mkdir()
        client = SqlClient(self.url, create=True)
        migrate(client)
        client.close()

    def wait_until_ready(self) -> None:
        """A file is."""

    @contextmanager
    def away(self) -> Iterator[None]:
        """Somebody has it to himself."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=60)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            yield

    def heal(self) -> None:
        at_sqlite.make_writable(self.path)

    def end(self) -> None:
        disks.unmount(self.disk)

    def pids(self) -> set[int]:
        return set()

    def clients(self) -> int:
        return 0

    def commands(self, pids: Iterable[int]) -> int:
        return sum(_calls(pid) for pid in pids)

    def needed(self, workers: int) -> float:
        """Looks at the file are at memory that it shares: they are no calls. But looks at the board are.

        Seen in a pool of three: 190 of the master, 275 of the steward, and 300 more where it serves a second store.
        """
        return 400 + 120 * workers


def _calls(pid: int) -> int:
    """System calls that read or wrote."""
    try:
        facts = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except OSError:
        return 0
    return int(facts["syscr"]) + int(facts["syscw"])
