"""Settings, opened stores and sites on each driver: redis, sqlite, postgres, mariadb; cluster, valkey, sentinel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from tests.support.idle_transactions import let_transactions_be_idle
from tests.support.pools import Site
from tests.support.redis_cluster import Cluster, on_cluster, spread_on_cluster
from tests.support.redis_server import PREFIX

DATABASES = ["sqlite", "postgres", "mariadb"]
#: Redis Clusters, by the program of their nodes
CLUSTERS = ["cluster", "valkey"]
#: a cluster, each of whose queues is in a slot of its own
SPREAD = "spread"
#: seconds after which a silent server counts as down: a worker's two or three are too few on a crowded machine
PATIENCE = 20.0


def connection_of(driver: str, request: pytest.FixtureRequest) -> ConnectionSettings:
    """On the session's Redis, an empty cluster, or an empty database that has our tables."""
    if driver == SPREAD:
        cluster = cluster_of("cluster", request)
        cluster.flush()
        return spread_on_cluster(cluster.url)
    if driver in CLUSTERS:
        cluster = cluster_of(driver, request)
        cluster.flush()
        return on_cluster(cluster.url)
    return _connection(driver, url_of(driver, request))


def cluster_of(brand: str, request: pytest.FixtureRequest) -> Cluster:
    """The session's."""
    found: Cluster = request.getfixturevalue(f"{brand}_nodes")
    return found


def bare_connection_of(driver: str, request: pytest.FixtureRequest) -> ConnectionSettings:
    """The same without any table."""
    return _connection(driver, request.getfixturevalue(f"{driver}_url"))


def url_of(driver: str, request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{driver}_tables" if driver in DATABASES else f"{driver}_url"))


def _connection(driver: str, url: str) -> ConnectionSettings:
    return ConnectionSettings(url=url, prefix=PREFIX, embedded=driver == "sqlite")


@contextmanager
def opened(connection: ConnectionSettings, patience: float = PATIENCE) -> Iterator[Stores]:
    """With Laravel's tables, where there are to be tables.

    ``patience``: seconds after which a silent server counts as down. Who is to wait for another client's locks needs
    more: that one may itself wait for a processor.
    """
    stores = Stores(connection, reply_timeout=patience)
    try:
        if not is_redis(connection.url):
            migrate(stores.client)
            let_transactions_be_idle(stores)
        yield stores
    finally:  # else the warning of a connection that was left open would fail a later test
        stores.close()


@contextmanager
def site_on(driver: str, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A place for a pool on this driver: the session's Redis, or an empty database."""
    if driver == "redis":
        yield request.getfixturevalue("site")
        return
    found = site_at(url_of(driver, request), request.getfixturevalue("tmp_path"), PATIENCE)
    yield found
    found.queue.close()


def site_at(url: str, path: Path, patience: float = 2.0) -> Site:
    """A place for a pool on an empty database, with its tables. ``patience`` of who pushes: by default the usual one.

    A test whose server goes away needs that.
    """
    client = SqlClient(url, create=True)
    migrate(client)
    client.close()
    connection = ConnectionSettings(url=url)
    return Site(connection, path, Queue(replace(connection, timeout=patience)))
