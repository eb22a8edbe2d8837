"""A primary of PostgreSQL and its streaming standby, each on a port of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.brands import USER, Postgres, find
from tests.support.databases import DatabaseServer, account
from tests.support.eventually import eventually
from tests.support.redis_server import free_port

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
