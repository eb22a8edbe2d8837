"""Fixtures: one real server of each kind for the session, emptied for each test, and what is built on it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from databases import DatabaseServer, MariaDB, Postgres, running
from eventually import eventually
from laravel_peer import Peer, require_php
from pools import Site
from redis.backoff import NoBackoff
from redis.retry import Retry

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue, configure
from queuepool.stores.factory import Stores

pytest_plugins = ["shared_tables"]
PREFIX = "laravel_database_"
#: Debian's redis-tools has the whole server under this name; it chooses its role by argv[0]
TOOL = "/usr/bin/redis-check-rdb"


#: files that take a minute or two, longest first: none must start when the other process has nothing left to do
LONG = (
    "test_chaos", "test_processes", "test_prefetch", "test_migrate", "test_preload", "test_attacked_board",
    "test_two_stores", "test_clock_steps", "test_sql_faults", "test_pool_database", "test_embedded",
    "test_stateful_sql", "test_cli",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


# A script's background processes ignore SIGINT, and so would all processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def start_redis(folder: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a private server on ``FOLDER/redis.sock``, ready to answer; the caller must end it."""
    binary = redis_binary()
    path = f"{folder}/redis.sock"
    usual = ["--port", "0", "--unixsocket", path, "--dir", folder, "--save", ""]
    server = subprocess.Popen(["redis-server", *usual, *options], executable=binary, stdout=subprocess.DEVNULL)
    eventually(lambda: server.poll() is not None or _answers(path))
    return server


def redis_binary() -> str:
    """Redis' program. Without it, skips the test, or fails it if CI is set."""
    binary = shutil.which("redis-server") or shutil.which(TOOL)
    if binary is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs redis-server")
    return str(binary)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One test's own server; its data outlives a kill (AOF)."""

    def __init__(self, folder: str, *options: str) -> None:
        self.folder = folder
        self.path = f"{folder}/redis.sock"
        self.options = ("--appendonly", "yes", "--appendfsync", "always", *options)
        self.start()

    def start(self) -> None:
        self.process = start_redis(self.folder, *self.options)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def say(self, *words: object) -> Any:
        """Send one command; returns the answer."""
        with redis.Redis(unix_socket_path=self.path) as client:
            return client.execute_command(*words)


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[str]:
    """The path of a private server's unix socket."""
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as folder:
        server = start_redis(folder)
        try:
            yield f"{folder}/redis.sock"
        finally:
            server.kill()
            server.wait()


@pytest.fixture
def redis_url(redis_socket: str) -> str:
    """The URL of an empty server."""
    with redis.Redis(unix_socket_path=redis_socket) as server:
        server.flushall()
    return f"unix://{redis_socket}"


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the server, to look past the store."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def connection(redis_url: str) -> ConnectionSettings:
    return ConnectionSettings(url=redis_url, prefix=PREFIX)


@pytest.fixture
def queue(connection: ConnectionSettings) -> Iterator[Queue]:
    """Where ``dispatch`` pushes to."""
    opened = configure(connection)
    yield opened
    opened.clear()
    opened.close()


@pytest.fixture
def stores(connection: ConnectionSettings) -> Iterator[Stores]:
    built = Stores(connection)
    yield built
    built.close()


@pytest.fixture
def peer(redis_url: str, redis_socket: str, tmp_path: Path) -> Peer:
    """A Laravel application on the same server."""
    require_php()
    return Peer(redis_socket, PREFIX, tmp_path / "laravel.jsonl")


def _answers(path: str) -> bool:
    try:
        with redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 0)) as client:
            return bool(client.ping())
    except redis.AuthenticationError:
        return True  # it runs and wants a password
    except redis.ConnectionError:
        return False


@pytest.fixture
def site(connection: ConnectionSettings, tmp_path: Path) -> Iterator[Site]:
    """A place for a test's own pools: see ``pools.Site``."""
    queue = Queue(connection)
    yield Site(connection, tmp_path, queue)
    queue.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as folder:
        server = Server(folder)
        yield server
        server.process.send_signal(signal.SIGCONT)
        server.kill()


@pytest.fixture
def away(own_server: Server, connection: ConnectionSettings, tmp_path: Path) -> Iterator[Site]:
    """A site on the test's own server."""
    own = replace(connection, url=f"unix://{own_server.path}")
    queue = Queue(own)
    yield Site(own, tmp_path, queue)
    queue.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[DatabaseServer]:
    with running(Postgres) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[DatabaseServer]:
    with running(MariaDB) as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'queuepool.db'}"


@pytest.fixture
def postgres_url(postgres: DatabaseServer) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def mariadb_url(mariadb: DatabaseServer) -> Iterator[str]:
    """The URL of an empty database."""
    with mariadb.database() as url:
        yield url


@pytest.fixture
def own_postgres() -> Iterator[DatabaseServer]:
    """A server that a test may kill."""
    with running(Postgres) as server:
        yield server


@pytest.fixture
def own_mariadb() -> Iterator[DatabaseServer]:
    """A server that a test may kill."""
    with running(MariaDB) as server:
        yield server
