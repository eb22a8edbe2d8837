"""A primary of PostgreSQL and its streaming standby, or of MariaDB and its replica; each has a port of its own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, create_engine

from tests.support.brands import USER, Brand, MariaDB, Postgres, find
from tests.support.databases import DatabaseServer, account
from tests.support.eventually import eventually
from tests.support.processes import halt
from tests.support.redis_server import free_port

#: ends the sessions of all others
EVERYBODY = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
)


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
        self.configure(synchronous_standby_names="*")
        eventually(lambda: self.ask("SELECT sync_state FROM pg_stat_replication") == "sync")

    def configure(self, **settings: str) -> None:
        """Change settings of the primary; it reads them a moment later."""
        changes = [f"ALTER SYSTEM SET {name} = '{value}'" for name, value in settings.items()]
        self.primary.execute(self.primary.url, *changes, "SELECT pg_reload_conf()")

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
        self.configure(default_transaction_read_only="on")

    def stop_sending(self) -> float:
        """Have the standby lag from now on, a Unix time: the primary's sender gets no processor any more."""
        sender = self.ask("SELECT pid FROM pg_stat_replication")
        assert isinstance(sender, int)
        halt(sender)
        return time.time()

    def fence(self) -> None:
        """Start the killed primary again as what it is now: a server that takes no writes."""
        Path(self.primary.brand.folder, "data/standby.signal").touch()
        self.primary.start()

    @contextmanager
    def application(self) -> Iterator[Engine]:
        """An engine of an application's own, over both servers."""
        hosts = "&".join(f"host=127.0.0.1:{port_of(one)}" for one in (self.primary, self.standby))
        options = f"{hosts}&target_session_attrs=read-write"
        engine = create_engine(f"postgresql+psycopg://{USER}@/postgres?{options}", pool_pre_ping=True)
        try:
            yield engine
        finally:
            engine.dispose()  # else the next test is charged with its connections if this one fails

    def promote(self) -> None:
        """Make the standby a primary; returns once it takes writes."""
        self.standby.execute(self.standby.url, "SELECT pg_promote()")


def port_of(server: DatabaseServer) -> int:
    assert isinstance(server.brand, Streaming)
    return server.brand.port


@contextmanager
def streaming() -> Iterator[Pair]:
    """A running pair."""
    with _server(Streaming) as primary, _server(partial(Streaming, source=port_of(primary))) as standby:
        pair = Pair(primary, standby)
        eventually(lambda: pair.ask("SELECT state FROM pg_stat_replication") == "streaming")
        yield pair


@dataclass(frozen=True)
class Replicating(MariaDB):
    """A MariaDB with a binary log, which listens on a port."""

    port: int = field(default_factory=free_port)

    def command(self) -> list[str]:
        network = ["--skip-networking=0", "--bind-address=127.0.0.1", f"--port={self.port}"]
        return [*super().command(), *network, "--log-bin=binlog", f"--server-id={self.port}"]


class Replicas:
    """A primary of MariaDB, its replica, and a name that leads to the one or the other: a link to its socket.

    ``url`` is that of a user whom ``read_only`` binds.
    """

    def __init__(self, primary: DatabaseServer, replica: DatabaseServer, folder: Path) -> None:
        self.primary, self.replica = primary, replica
        self._name = folder / "primary.sock"
        self.url = f"mariadb://app@localhost/{USER}?unix_socket={self._name}"
        assert isinstance(primary.brand, Replicating)
        origin = f"MASTER_HOST='127.0.0.1', MASTER_PORT={primary.brand.port}, MASTER_USER='{USER}'"
        follow = f"CHANGE MASTER TO {origin}, MASTER_USE_GTID=slave_pos"
        replica.execute(replica.url, follow, "SET GLOBAL read_only = 1", "START SLAVE")
        primary.execute(primary.url, "CREATE USER app@localhost", f"GRANT ALL ON {USER}.* TO app@localhost")
        self.catch_up()
        self.lead_to(primary)

    def lead_to(self, server: DatabaseServer) -> None:
        """Move the name."""
        new = self._name.with_suffix(".new")
        new.symlink_to(server.socket)
        new.replace(self._name)

    def catch_up(self) -> None:
        """Wait until the replica has everything."""
        with self.primary._statements(self.primary.url) as run:
            place = run("SELECT @@gtid_binlog_pos").scalar()
        with self.replica._statements(self.replica.url) as run:
            assert 0 == run(f"SELECT MASTER_GTID_WAIT('{place}', 20)").scalar()

    def fence(self) -> None:
        """Have the primary refuse every write, and end the sessions of the application."""
        self.primary.execute(self.primary.url, "SET GLOBAL read_only = 1", "KILL USER app")

    def promote(self) -> None:
        """Have the replica take writes, and lead the name to it."""
        self.replica.execute(self.replica.url, "STOP SLAVE", "SET GLOBAL read_only = 0")
        self.lead_to(self.replica)


@contextmanager
def replicating(folder: Path) -> Iterator[Replicas]:
    """A running pair, whose name is in ``folder``."""
    with _server(Replicating) as primary, _server(Replicating) as replica:
        yield Replicas(primary, replica, folder)


@contextmanager
def _server(brand: Callable[[str], Brand]) -> Iterator[DatabaseServer]:
    with tempfile.TemporaryDirectory(prefix="queuepool-standby-") as folder:
        os.chown(folder, account().get("user", -1), account().get("group", -1))
        server = DatabaseServer(brand(folder))
        try:
            yield server
        finally:
            server.stop()
