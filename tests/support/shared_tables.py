"""One database that a Laravel application and queuepool share, emptied for each test.

Each module names the creator of its tables: ``pytestmark = made("postgres-8")``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.settlement.failing import record
from queuepool.stores.factory import Stores
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.laravel_peer import Peer, Talk, require_php

REPORT = "App\\Jobs\\Report@build"
MAIL = "App\\Jobs\\SendMail"
TAG = 7
TABLES = ("jobs", "failed_jobs", "cache")
BRANDS = {"sqlite": ("sqlite", "pysqlite"), "postgres": ("pgsql", "psycopg"), "mariadb": ("mysql", "pymysql")}
EVERY = [f"{brand}-{shape}" for brand in BRANDS for shape in ("8", "13")]


def made(*tables: str) -> list[pytest.MarkDecorator]:
    """Run the module's tests for each of these: tables by Laravel 8's migrations, by Laravel 13's, or by ``ours``."""
    return [
        pytest.mark.parametrize("tables", tables, indirect=True, scope="module"),
        pytest.mark.every_store("tables"),
    ]


@dataclass(frozen=True, slots=True)
class Shared:
    """Both sides of one database, and direct access to it."""

    brand: str
    connection: ConnectionSettings
    engine: Engine
    peer: Peer
    queue: Queue
    stores: Stores

    @property
    def store(self) -> Any:
        return self.stores.queue

    def rows(self, table: str) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY 1")).mappings()]

    def change(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def runs(self) -> list[dict[str, Any]]:
        """The notes that jobs wrote on Laravel's side."""
        return [line for line in self.peer.lines() if "job" in line]

    def reserve(self, name: str = "default", at: float | None = None) -> list[Lease]:
        """Reserve one job as our worker does, at that second or now."""
        self.store.clock = "" if at is None else repr(float(at))
        return list(self.store.reserve([name], TAG, 1).leases)

    def reserved(self, name: str = "default", at: float | None = None) -> tuple[Lease, Payload]:
        """The next job, as a worker reserves it."""
        [lease] = self.reserve(name, at)
        return lease, decode(lease.receipt, lease.attempts)

    def fail(self, name: str = "default") -> str:
        """Make one attempt that fails for good; returns the id."""
        lease, job = self.reserved(name)
        row = record(job, lease, "default", ValueError("told to"))
        assert self.store.fail(lease, job.id, row)
        return str(row["id"])


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The brand and the URL of a database with tables."""
    brand, _, maker = request.param.partition("-")
    require_php(BRANDS[brand][0])
    folder = tmp_path_factory.mktemp(request.param)
    with _database(brand, folder, request) as url:
        _make_tables(url, maker, folder)
        yield brand, url


@pytest.fixture
def shared(tables: tuple[str, str], tmp_path: Path) -> Iterator[Shared]:
    brand, url = tables
    connection = ConnectionSettings(url=url)
    engine = create_engine(url.replace("://", f"+{BRANDS[brand][1]}://", 1), poolclass=NullPool)
    queue, stores = Queue(connection), Stores(connection)
    both = Shared(brand, connection, engine, Peer.on(url, tmp_path / "laravel.jsonl"), queue, stores)
    both.change(*(f"DELETE FROM {table}" for table in TABLES))
    yield both
    queue.close()
    stores.close()


@pytest.fixture(scope="module")
def talking(tables: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A running Laravel; each request sets its clock."""
    with Peer.on(tables[1], tmp_path_factory.mktemp("talk") / "laravel.jsonl").serving() as talk:
        yield talk


@pytest.fixture
def talk(shared: Shared, talking: Talk) -> Talk:
    """The same, on empty tables."""
    return talking


@contextmanager
def _database(brand: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if brand == "sqlite":
        yield f"sqlite:///{folder / 'shared.db'}"
        return
    with request.getfixturevalue(brand).database() as url:
        yield url


def _make_tables(url: str, maker: str, folder: Path) -> None:
    if maker != "ours":
        Peer.on(url, folder / "none").run("migrate", shape=maker)
        return
    client = SqlClient(url, create=True)
    migrate(client)
    assert 0 == client.ask(lambda connection: connection.execute(text("SELECT count(*) FROM jobs")).scalar_one())
    client.close()
