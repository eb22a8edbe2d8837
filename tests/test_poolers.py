"""Work behind PgBouncer, which gives a server's connection to somebody else after each transaction."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from eventually import eventually
from poolers import PgBouncer, pooler
from pools import RunningPool, Site
from test_pool_database import at

from queuepool.client import Queue


@pytest.fixture(params=["session", "transaction"])
def bouncer(request, postgres) -> Iterator[PgBouncer]:
    with pooler(postgres, request.param) as running:
        yield running


@pytest.fixture
def site(bouncer, postgres_url, tmp_path) -> Iterator[Site]:
    found = at(bouncer.before(postgres_url), tmp_path)
    yield found
    found.queue.close()


def test_through_a_pooler_nothing_is_lost_or_run_twice_while_workers_are_killed(site):
    producers, killed = 16, set()

    def produce(_: int) -> list[str]:
        with closing(Queue(site.connection)) as queue:
            return [queue.push("do", {"mode": "ok"}) for _ in range(25)]

    with pools(site) as running, ThreadPoolExecutor(4) as threads:
        pushing = threads.map(produce, range(producers))
        for pool in running * 3:
            victim = eventually(pool.workers)[0]
            killed.add(victim)
            os.kill(victim, signal.SIGKILL)
            eventually(lambda pool=pool: 2 == len(pool.workers()))
        pushed = {identity for some in pushing for identity in some}
        eventually(lambda: 0 == site.queue.size(), within=30)

    ends = site.trail(event="end")
    first = {line["id"]: line["pid"] for line in reversed(ends)}
    twice = {identity for identity, times in Counter(line["id"] for line in ends).items() if times > 1}
    assert (25 * producers, pushed) == (len(pushed), set(first))
    assert set() == {identity for identity in twice if first[identity] not in killed}


@contextmanager
def pools(site: Site) -> Iterator[list[RunningPool]]:
    """Two of them, as on two hosts."""
    with site.pool("--workers", "2") as one, site.pool("--workers", "2", "--runtime-dir", f"{site.path}/run2") as two:
        yield [one, two]
