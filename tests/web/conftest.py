"""A place for a dashboard on each store, and a browser that asks it."""

from __future__ import annotations

import pytest

from tests.support.dashboards import config_of, opened
from tests.support.drivers import site_on

#: pages ask the stores by one contract, which ``stores/contract`` holds all four to
FURTHER = pytest.mark.thorough("what a page asks of a store is in its contract")


@pytest.fixture(
    params=["redis", "sqlite", pytest.param("postgres", marks=FURTHER), pytest.param("mariadb", marks=FURTHER)]
)
def at(request: pytest.FixtureRequest):
    with site_on(request.param, request) as found:
        yield found


@pytest.fixture
def browser(at):
    with opened(config_of(at)) as found:
        yield found
