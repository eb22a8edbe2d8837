"""A pool and its producers on PostgreSQL with a standby: it is promoted under load, and a ledger says what is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queuepool.config.urls import url
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from tests.pool.test_failovers import Ledger, loaded, resumes
from tests.support.drivers import site_at
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.standbys import Pair, streaming


@pytest.fixture
def pair() -> Iterator[Pair]:
    with streaming() as found:
        yield found


@pytest.fixture
def over(pair: Pair, tmp_path: Path) -> Iterator[Site]:
    """A place for pools on both servers."""
    found = site_at(url(pair.url), tmp_path)
    yield found
    found.queue.close()


def test_a_killed_primary(pair, over):
    with loaded(over) as (pool, load):
        killed = time.time()
        pair.primary.kill()
        pair.promote()
        promoted = time.time()
        print(f"promoted after {promoted - killed:.3f}")
        eventually(lambda: resumes(over, load, promoted))

    ledger = Ledger.of(load)
    print(len(load.acked), "acked", load.unsure, "unsure", min(pushed for pushed in load.acked.values() if pushed > promoted) - promoted)
    assert ledger.is_bounded(killed, promoted)
    assert ledger.slow == 1
    assert ledger.work_after(promoted) < 2
