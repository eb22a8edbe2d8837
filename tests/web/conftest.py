"""A place for a dashboard on each store, and a browser that asks it."""

from __future__ import annotations

import pytest

from queuepool.web import connections, scans
from tests.support.dashboards import config_of, opened
from tests.support.drivers import site_on

#: pages ask the stores by one contract, which ``stores/contract`` holds all four to
FURTHER = pytest.mark.thorough("what a page asks of a store is in its contract")


@pytest.fixture(autouse=True)
def waits_for_whole_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page shows what it has after a tenth of a second, and after three that there is no answer yet.

    A busy machine may need them for three rows.
    """
    monkeypatch.setattr(scans, "PATIENCE", 30.0)
    monkeypatch.setattr(connections, "COUNTING_PATIENCE", 30.0)


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
