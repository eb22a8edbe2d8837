"""A connection of each driver, with a clock that moves only when a test moves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import PREFIX

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.sql.migrate import migrate
from store.contract import Clock

DATABASES = ["sqlite", "postgres", "mariadb"]


def connection_of(driver: str, request: pytest.FixtureRequest) -> ConnectionSettings:
    url = request.getfixturevalue(f"{driver}_url")
    return ConnectionSettings(url=url, prefix=PREFIX, embedded=driver == "sqlite")


@contextmanager
def opened(connection: ConnectionSettings) -> Iterator[Stores]:
    """With Laravel's tables, where there are to be tables."""
    stores = Stores(connection)
    if not is_redis(connection.url):
        migrate(stores.client)
    yield stores
    stores.close()


@pytest.fixture(params=["redis", *DATABASES])
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of(request.param, request)


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


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of(request.param, request)


@pytest.fixture
def sql(database: ConnectionSettings) -> Iterator[Stores]:
    """Every database, one after the other."""
    with opened(database) as stores:
        yield stores
