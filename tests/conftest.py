"""Fixtures: one real server of each kind for the session, emptied for each test, and what is built on it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.jobs.connecting import configure
from queuepool.stores.factory import Stores
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.faults.entries import entries_of
from tests.support import databases, effort, redis_cluster, sentinels, warm
from tests.support.databases import DatabaseServer, MariaDB, Postgres, running
from tests.support.drivers import PATIENCE
from tests.support.laravel_peer import Peer, require_php
from tests.support.left_behind import files_of, require_none_in
from tests.support.pools import Site
from tests.support.redis_cluster import Cluster
from tests.support.redis_server import PREFIX, Server, start_redis, valkey_binary
from tests.support.sentinels import Sentinels

pytest_plugins = [
    "tests.support.costs",
    "tests.support.ending",
    "tests.support.selection",
    "tests.support.shared_tables",
]

#: files that take half a minute or more, longest first: none must start when the others have nothing left to do
LONG = [
    "web/test_strange_values.py",  # with --all each page and action on each store
    "incidents/test_incidents.py",  # all of them, one after the other
    "metrics/test_with_prometheus.py",  # a real pool raises an alert, and a real Prometheus sees it
    "pool/test_alerts_of_real_pools.py",  # an alert is looked for every 15 s
    "pool/test_failovers.py",  # sentinels take seconds to agree
    "pool/test_schedules_in_a_pool.py",  # a schedule is due at whole seconds
    "chaos/test_chaos_runs.py",  # a fault takes some seconds to show itself
    "pool/test_preload.py",  # starts that are executed
    "stores/contract/test_several_processes.py",
    "contrib/test_django_app.py",  # Django boots in each process
    "pool/test_orphans.py",  # orphans outlive leases
    "stores/test_within.py",
    "stores/contract/test_sql_rows.py",
    "cli/test_top.py",
    "stores/contract/test_awaited_pushes.py",
    "pool/test_notices_of_alerts.py",  # a receiver is given up after 10 s
    "stores/contract/test_sql_faults.py",
    "pool/test_service_manager.py",
    "model/test_every_interleaving.py",  # it searches every state of the protocol
    "pool/test_deaths.py",
    "pool/test_clusters.py",  # nodes are taken for lost after 5 s
    "stores/test_redis_cluster.py",
    "pool/test_alerts.py",
    "pool/test_operating_a_pool.py",
    "cli/test_newcomers_mistakes.py",
    "pool/test_two_stores.py",
    "laravel/test_chains_and_batches.py",
    "faults/test_clock_steps.py",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    files = [Path(__file__).parent / name for name in LONG]
    items.sort(key=lambda item: files.index(item.path) if item.path in files else len(files))


gc.disable()  # until the tests are collected: searches among what stays take a sixth of that time


def pytest_collection_finish() -> None:
    """Leave the 300,000 objects of the collection to no further search for garbage.

    Each would take a second and more on a busy machine, in the middle of anything: a server ends the transaction of a
    client that is silent for two.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """``-k F06`` selects the tests of that entry of the catalogue."""
    item.extra_keyword_matches.update(entries_of(item))


def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis tries fewer examples by default."""
    effort.load(whole=bool(config.option.whole or config.option.part))


# A script's background processes ignore these two, and so would all processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up first, so that it looks when everything else of the test has ended."""
    before = files_of(request.config.rootpath)
    yield
    left = files_of(request.config.rootpath) - before
    assert not left, f"left in the working directory, by this test or by one beside it: {left}"
    folder = (request.node.funcargs or {}).get("tmp_path")  # none is left of a test that was interrupted
    if folder:
        require_none_in(folder)


@pytest.fixture(autouse=True)
def executes_what_is_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """See ``warm.start``."""
    monkeypatch.setattr(warm, "always_real", request.node.get_closest_marker("real_start") is not None)
    further = request.node.get_closest_marker("libraries")
    monkeypatch.setattr(warm, "libraries", further.args if further else ())


@pytest.fixture(scope="session", autouse=True)
def warm_interpreter() -> Iterator[None]:
    """What commands are forked from, started with the first of them."""
    yield
    warm.end()


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


@pytest.fixture(scope="session")
def sentinel() -> Iterator[Sentinels]:
    """A primary without replicas, and the sentinel that names it."""
    folder = tempfile.TemporaryDirectory(prefix="queuepool-redis-")
    with folder as path, sentinels.running(Path(path), replicas=0, count=1) as found:
        yield found


@pytest.fixture
def sentinel_url(sentinel: Sentinels) -> str:
    """The URL of an empty server that a sentinel names."""
    sentinel.servers[0].say("FLUSHALL")
    return sentinel.url


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
    opened = configure(replace(connection, timeout=PATIENCE))
    yield opened
    opened.clear()
    opened.close()


@pytest.fixture
def stores(connection: ConnectionSettings) -> Iterator[Stores]:
    built = Stores(connection, reply_timeout=PATIENCE)
    yield built
    built.close()


@pytest.fixture
def peer(redis_url: str, redis_socket: str, tmp_path: Path) -> Peer:
    """A Laravel application on the same server."""
    require_php()
    return Peer(redis_socket, PREFIX, tmp_path / "laravel.jsonl")


@pytest.fixture
def site(connection: ConnectionSettings, tmp_path: Path) -> Iterator[Site]:
    """A place for a test's own pools: see ``pools.Site``."""
    queue = Queue(replace(connection, timeout=PATIENCE))
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
    queue = Queue(replace(own, timeout=PATIENCE))
    yield Site(own, tmp_path, queue)
    queue.close()


@pytest.fixture(scope="session")
def cluster_nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Redis Cluster, each of whose masters has a replica where all is tested."""
    with redis_cluster.running(tmp_path_factory.mktemp("cluster"), replicas=request.config.option.whole) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def valkey_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The same of Valkey, without replicas."""
    with redis_cluster.running(tmp_path_factory.mktemp("valkey"), binary=valkey_binary()) as cluster:
        yield cluster


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with replicas, which a test may break."""
    with redis_cluster.running(tmp_path / "cluster", replicas=True, lost_after=redis_cluster.SOON) as cluster:
        yield cluster


@pytest.fixture(scope="session", autouse=True)
def servers_are_set_up_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.getbasetemp()
    databases.keep_in(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


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


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with our tables, to be copied."""
    path = tmp_path_factory.mktemp("tables") / "queuepool.db"
    client = SqlClient(f"sqlite:///{path}", create=True)
    migrate(client)
    client.close()
    return path


@pytest.fixture
def sqlite_tables(sqlite_file: Path, sqlite_url: str) -> str:
    """The URL of a file with our tables."""
    shutil.copyfile(sqlite_file, sqlite_url.removeprefix("sqlite:///"))
    return sqlite_url


@pytest.fixture
def postgres_tables(postgres: DatabaseServer) -> Iterator[str]:
    """The URL of a database with our tables."""
    with postgres.tables() as url:
        yield url


@pytest.fixture
def mariadb_tables(mariadb: DatabaseServer) -> Iterator[str]:
    """The URL of a database with our tables."""
    with mariadb.tables() as url:
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
