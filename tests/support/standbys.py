"""A primary of PostgreSQL and its streaming standby, each on a port of its own."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.brands import USER, Postgres, find
from tests.support.databases import DatabaseServer, account
from tests.support.eventually import eventually
from tests.support.redis_server import free_port

#: ends the sessions of all others
EVERYBODY = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
)
_SYNCHRONOUS = ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"]


@dataclass(frozen=True)
class Streaming(Postgres):
    """A PostgreSQL that listens on a port; a standby of ``source``, if there is one."""

    port: int = field(default_factory=free_port)
    source: int | None = None

    def set_up(self) -> list[str]:
        if self.source is None:
            return super().set_up()
        origin = f"host=127.0.0.1 port={self.source} user={USER}"
        copied = ["--pgdata", f"{self.folder}/data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        return [find("pg_basebackup"), "--dbname", origin, *copied]

    def command(self) -> list[str]:
        return [*super().command(), "--listen_addresses=127.0.0.1", f"--port={self.port}"]

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"


class Pair:
    """Two running servers; the second is a standby of the first until it is promoted."""

    def __init__(self, primary: DatabaseServer, standby: DatabaseServer) -> None:
        self.primary, self.standby = primary, standby
        hosts = ",".join(f"127.0.0.1:{port_of(one)}" for one in (primary, standby))
        #: names both, as libpq does
        self.url = f"postgresql://{USER}@/postgres?host={hosts}&target_session_attrs=read-write"

    def be_synchronous(self) -> None:
        """Have a commit wait until the standby has it on its disk."""
        self.primary.execute(self.primary.url, *_SYNCHRONOUS)
        eventually(lambda: self.ask("SELECT sync_state FROM pg_stat_replication") == "sync")

    def ask(self, statement: str) -> object:
        """The first value that the primary answers."""
        with self.primary._statements(self.primary.url) as run:
            return run(statement).scalar()

    def catch_up(self) -> None:
        """Wait until the standby shows all that the primary has committed."""
        place = self.ask("SELECT pg_current_wal_lsn()")
        eventually(lambda: self.ask(f"SELECT replay_lsn >= '{place}' FROM pg_stat_replication"))

    def make_read_only(self) -> None:
        """Have the primary refuse every write from now on, also in the sessions that are open."""
        self.primary.execute(
            self.primary.url, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"
        )

    def stop_sending(self) -> float:
        """Have the standby lag from now on, a Unix time: the primary's sender gets no processor any more."""
        sender = self.ask("SELECT pid FROM pg_stat_replication")
        assert isinstance(sender, int)
        os.kill(sender, signal.SIGSTOP)
        return time.time()

    def fence(self) -> None:
        """Start the killed primary again as what it is now: a server that takes no writes."""
        Path(self.primary.brand.folder, "data/standby.signal").touch()
        self.primary.start()

    def promote(self) -> None:
        """Make the standby a primary; returns once it takes writes."""
        self.standby.execute(self.standby.url, "SELECT pg_promote()")


def port_of(server: DatabaseServer) -> int:
    assert isinstance(server.brand, Streaming)
    return server.brand.port


@contextmanager
def streaming() -> Iterator[Pair]:
    """A running pair."""
    with _server() as primary, _server(port_of(primary)) as standby:
        pair = Pair(primary, standby)
        eventually(lambda: pair.ask("SELECT state FROM pg_stat_replication") == "streaming", within=30)
        yield pair


@contextmanager
def _server(source: int | None = None) -> Iterator[DatabaseServer]:
    with tempfile.TemporaryDirectory(prefix="queuepool-standby-") as folder:
        os.chown(folder, account().get("user", -1), account().get("group", -1))
        server = DatabaseServer(Streaming(folder, source=source))
        try:
            yield server
        finally:
            server.stop()
