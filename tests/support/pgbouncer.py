"""PgBouncer in front of a private PostgreSQL, on a unix socket of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.brands import USER, find
from tests.support.databases import DatabaseServer, account
from tests.support.eventually import eventually

PORT = 6432
_SETTINGS = """
[databases]
* = host={server} port=5432
[pgbouncer]
unix_socket_dir = {folder}
listen_port = {port}
logfile = {folder}/log
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = {size}
"""


class PgBouncer:
    """A running pooler: ``mode`` is session, transaction or statement; ``size``: the most server connections."""

    def __init__(self, server: DatabaseServer, folder: str, mode: str, size: int) -> None:
        self.folder = Path(folder)
        settings = _SETTINGS.format(server=server.socket, folder=folder, port=PORT, mode=mode, size=size)
        (self.folder / "pgbouncer.ini").write_text(settings)
        (self.folder / "users").write_text(f'"{USER}" ""\n')
        self.start()

    def start(self) -> None:
        """Start the pooler; returns once it answers."""
        command = ["setpriv", "--pdeathsig", "SIGINT", find("pgbouncer"), "-q", str(self.folder / "pgbouncer.ini")]
        self.process = subprocess.Popen(command, **account(), cwd=self.folder, start_new_session=True)
        eventually(lambda: self.process.poll() is not None or self._answers())
        assert self.process.poll() is None, (self.folder / "log").read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        (self.folder / f".s.PGSQL.{PORT}").unlink(missing_ok=True)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.folder / f".s.PGSQL.{PORT}")) == 0

    def before(self, url: str) -> str:
        """This database's URL through the pooler."""
        return f"postgresql://{USER}@:{PORT}{urlsplit(url).path}?host={self.folder}"


@contextmanager
def pooler(server: DatabaseServer, mode: str, size: int = 20) -> Iterator[PgBouncer]:
    """A running pooler, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="queuepool-pooler-") as folder:
        os.chown(folder, account().get("user", -1), account().get("group", -1))
        running = PgBouncer(server, folder, mode, size)
        try:
            yield running
        finally:
            running.kill()
