"""Fixtures: a pool's place and a Laravel application on one store, of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.support.chains import STEPS
from tests.support.laravel_peer import Peer, require_php
from tests.support.pools import Site
from tests.support.shared_tables import BRANDS


@pytest.fixture(params=["redis", *BRANDS])
def both(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Site, Peer]]:
    """A place for pools and an application on one store; on Redis, its batches are in a file of SQLite."""
    require_php("sqlite" if request.param == "redis" else BRANDS[request.param][0])
    if request.param == "redis":
        url = f"sqlite:///{tmp_path / 'batches.db'}"
        monkeypatch.setenv("QP_BATCHES_URL", url)
        Peer.on(url, tmp_path / "unused").run("migrate", shape="batches")
        yield request.getfixturevalue("site"), request.getfixturevalue("peer")
        return
    url = request.getfixturevalue(f"{request.param}_url")
    peer = Peer.on(url, tmp_path / "laravel.jsonl")
    peer.run("migrate")
    peer.run("migrate", shape="batches")
    connection = ConnectionSettings(url=url)
    with closing(Queue(connection)) as queue:
        yield Site(connection, tmp_path, queue), peer


@pytest.fixture
def laravel(both: tuple[Site, Peer]) -> Peer:
    return both[1]


@pytest.fixture
def steps(both: tuple[Site, Peer]) -> Site:
    """Handlers for the steps, which note their number."""
    site, _ = both
    (site.path / "steps.py").write_text(STEPS)
    return site
