"""Fixtures: a site on each database, and one on a server that the test may kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.databases import DatabaseServer
from tests.support.drivers import site_at, site_on
from tests.support.pools import Site


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def site(request) -> Iterator[Site]:
    with site_on(request.param, request) as found:
        yield found


@pytest.fixture(params=["postgres", "mariadb"])
def server(request) -> DatabaseServer:
    """One that the test may kill."""
    return request.getfixturevalue(f"own_{request.param}")


@pytest.fixture
def away(server, tmp_path) -> Iterator[Site]:
    found = site_at(server.url, tmp_path)
    yield found
    found.queue.close()
