"""PostgreSQL or MariaDB, a private server of this run; the far pool is behind a proxy."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
from sqlalchemy import exc, text

from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.chaos import at_databases, at_network, at_sql
from tests.chaos.proxy import Proxy
from tests.chaos.stores.base import Nemeses
from tests.chaos.stores.tables import InTables, Tables
from tests.chaos.stores.words import OURS, Words
from tests.support.databases import Brand, DatabaseServer, running


class DatabaseStore(InTables):
    """The pools have an account of their own, with a password; the harness is the superuser."""

    nemeses: Nemeses = {**at_sql.NEMESES, **at_databases.NEMESES, **at_network.NEMESES}
    prefix = ""
    #: PostgreSQL's sessions report once a second, with what they are asked then
    counts_after = 3.0

    def __init__(self, brand: type[Brand], words: Words, folder: Path, password: str) -> None:
        self.words = words
        self._brand = brand
        self._folder = folder
        self._password = password
        self._open = ExitStack()

    def start(self) -> None:
        self._folder.mkdir(exist_ok=True)
        self.server: DatabaseServer = self._open.enter_context(running(self._brand))
        folder = Path(self.server.brand.folder)
        self.url, self.far = self._url(folder), self._url(self._folder)
        self.server.execute(self.server.url, *(line.format(self._password) for line in self.words.account))
        self.tables = Tables(self.server.engine(self.server.brand.url(OURS)))
        self.proxy = Proxy(str(folder / self.words.socket), self._folder / self.words.socket)
        self.proxy.start()
        self._open.callback(self.proxy.stop)
        client = SqlClient(self.url)
        migrate(client)
        client.close()

    def wait_until_ready(self) -> None:
        self.server.execute(self.server.url, "SELECT 1")

    @contextmanager
    def away(self) -> Iterator[None]:
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def heal(self) -> None:
        self.signal(signal.SIGCONT)
        self.wait_until_ready()
        self.proxy.heal()

    def end(self) -> None:
        with suppress(AttributeError, psutil.NoSuchProcess):  # it may never have come to life
            self.signal(signal.SIGCONT)
        self._open.close()

    def signal(self, signum: signal.Signals) -> None:
        """To all of its processes."""
        server = psutil.Process(self.server.process.pid)
        for one in [server, *server.children()]:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signum)

    def pids(self) -> set[int]:
        return {self.server.process.pid}

    def clients(self) -> int:
        return int(self.tables.ask(self.words.clients)[0][0])

    def commands(self, pids: Iterable[int]) -> int:
        return int(self.tables.ask(self.words.commands)[0][0])

    def needed(self, workers: int) -> float:
        return 4 + self.words.needed * workers

    def numbers(self, statement: str) -> list[int]:
        return [row[0] for row in self.tables.ask(statement)]

    def end_connection(self, number: int) -> None:
        with self.tables.engine.connect() as connection, suppress(exc.DBAPIError):  # it may have gone by itself
            connection.execute(text(self.words.end.format(number)))

    def _url(self, folder: Path) -> str:
        return self.words.url.format(password=self._password, folder=folder)
