"""Fixtures: a connection of each driver, with a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from tests.support.drivers import CLUSTERS, DATABASES, cluster_of, connection_of, opened
from tests.support.one_slot import all_in_one_slot
from tests.support.store_contract import Clock

#: the databases share their code but for the dialect: by default each test has Redis and one of them, another one for
#: each test
_ONE_DATABASE = [pytest.param(name, marks=pytest.mark.every_store("connection")) for name in DATABASES]
_EACH_DATABASE = [pytest.param(name, marks=pytest.mark.every_store("database")) for name in DATABASES]
#: the same scripts as on one server, or the same server reached in another way
_OTHERS = [pytest.param(name, marks=pytest.mark.thorough("Redis runs in any case")) for name in (*CLUSTERS, "sentinel")]


@pytest.fixture(params=["redis", *_ONE_DATABASE, *_OTHERS])
def connection(request: pytest.FixtureRequest) -> Iterator[ConnectionSettings]:
    found = connection_of(request.param, request)
    is_watched = request.param in CLUSTERS and not request.node.get_closest_marker("megabytes")
    with all_in_one_slot(cluster_of(request.param, request).owner()) if is_watched else nullcontext():
        yield found


@pytest.fixture
def built(connection: ConnectionSettings) -> Iterator[Stores]:
    """Every store, one after the other."""
    with opened(connection) as stores:
        yield stores


@pytest.fixture
def store(built: Stores) -> Any:
    return built.queue


@pytest.fixture
def at(built: Stores) -> Clock:
    return Clock(built.queue)


@pytest.fixture(params=_EACH_DATABASE)
def database(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of(request.param, request)


@pytest.fixture
def sql(database: ConnectionSettings) -> Iterator[Stores]:
    """Every database; by default one of them for each test, each for some."""
    with opened(database) as stores:
        yield stores
