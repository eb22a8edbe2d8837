"""Fixtures: a connection of each driver, with a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from tests.support.drivers import CLUSTERS, DATABASES, SPREAD, cluster_of, connection_of, opened
from tests.support.one_slot import all_in_one_slot, each_in_one_slot
from tests.support.store_contract import Clock

#: the databases share their code but for the dialect: by default each test has Redis and one of them, another one for
#: each test
_ONE_DATABASE = [pytest.param(name, marks=pytest.mark.every_store("connection")) for name in DATABASES]
_EACH_DATABASE = [pytest.param(name, marks=pytest.mark.every_store("database")) for name in DATABASES]
#: the same scripts as on one server, or the same server reached in another way
_OTHERS = [
    pytest.param(name, marks=pytest.mark.thorough("Redis runs in any case")) for name in (*CLUSTERS, SPREAD, "sentinel")
]
#: what is refused, or another one, where each queue is in a slot of its own (docs/stores.md): modules, and tests
_IN_ONE_SLOT = {
    "test_arrivals", "test_flows", "test_limits", "test_stopped_flows", "test_counters_of_laravel",
    "test_the_state_of_a_job_names_the_queue_to_which_it_is_moved", "test_jobs_are_moved_each_to_be_in_one_place",
    "test_moved_jobs_come_last_and_are_not_met_by_a_walk_under_way",
    "test_a_new_job_in_the_place_of_one_that_is_gone_stays",
    # Locks are elsewhere, and released before; failures get the time at which they arrive in the home.
    "test_a_late_end_pushes_nothing_and_releases_nothing", "test_a_failed_job_is_recorded_and_ended",
    "test_a_job_pushed_again_that_fails_again_has_a_second_record", "test_jobs_that_failed_before_a_moment_are_found",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _needs_one_slot(item)]


def _needs_one_slot(item: pytest.Item) -> bool:
    names = item.path.stem, getattr(item, "originalname", "")
    is_spread = SPREAD in getattr(getattr(item, "callspec", None), "params", {}).values()
    return is_spread and item.path.parent == Path(__file__).parent and not _IN_ONE_SLOT.isdisjoint(names)


@pytest.fixture(params=["redis", *_ONE_DATABASE, *_OTHERS])
def connection(request: pytest.FixtureRequest) -> Iterator[ConnectionSettings]:
    found = connection_of(request.param, request)
    is_watched = request.param in CLUSTERS and not request.node.get_closest_marker("megabytes")
    with _watched(request) if is_watched or request.param == SPREAD else nullcontext():
        yield found


def _watched(request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    if request.param == SPREAD:
        return each_in_one_slot(cluster_of("cluster", request))
    return all_in_one_slot(cluster_of(request.param, request).owner())


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
