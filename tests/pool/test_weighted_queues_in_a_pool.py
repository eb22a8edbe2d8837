"""Pools whose queues have weights: a flood in one does not keep the jobs of another waiting."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site

WEIGHTED = ("--queue", "high*6,default*3,low*1")
QUEUES = ("high", "default", "low")
JOBS = 120


@pytest.fixture(params=["redis", "sqlite"])
def stored(request) -> Iterator[Site]:
    """A site on each kind of store."""
    with site_on(request.param, request) as site:
        yield site


def work(site: Site, *flags: str) -> list[str]:
    """The queues of the jobs that one worker runs, in its order, while each queue has 120."""
    fill(site)
    site.work(*flags)
    return ran(site)


def fill(site: Site) -> None:
    for queue in QUEUES:
        site.queue.bulk([("do", {"tag": queue})] * JOBS, queue=queue)


def ran(site: Site) -> list[str]:
    return [line["tag"] for line in site.trail(event="start")]


@pytest.mark.every_store("stored")
def test_a_worker_shares_its_jobs_by_the_weights_and_runs_each_once(stored):
    order = work(stored, *WEIGHTED, "--reserve-ahead", "2")

    first = Counter(order[:100])
    assert [pytest.approx(10 * weight, abs=4) for weight in (6, 3, 1)] == [first[queue] for queue in QUEUES]
    assert dict.fromkeys(QUEUES, JOBS) == Counter(order)


@pytest.mark.thorough("unit/test_weighted_queues.py has the shares; the first test has a worker")
def test_without_weights_the_order_is_strict(site):
    assert [queue for queue in QUEUES for _ in range(JOBS)] == work(site, "--queue", ",".join(QUEUES))


@pytest.mark.thorough("unit/test_weighted_queues.py has the shares; the first test has a worker")
def test_jobs_side_by_side_are_shared_by_the_weights(site):
    fill(site)
    with site.pool(*WEIGHTED, "--workers", "1", "--concurrency", "2"):
        eventually(lambda: len(QUEUES) * JOBS == len(site.trail(event="end")))

    first = Counter(ran(site)[:100])
    assert [pytest.approx(10 * weight, abs=4) for weight in (6, 3, 1)] == [first[queue] for queue in QUEUES]


def test_status_and_the_log_show_the_weights(site):
    with site.pool(*WEIGHTED, "--workers", "1") as pool:
        place = ("--runtime-dir", pool.runtime)
        shown = site.run("status", *place).stdout
        published = site.run("status", "--all", *site.where, check=False).stdout
        [facts] = json.loads(site.run("status", "--json", *place).stdout)
        log = pool.log()

    assert "queues=high*6,default*3,low*1" in shown
    assert "queues=high*6,default*3,low*1" in published
    assert re.search(r"queues: +high\*6,default\*3,low\*1\n", log)
    assert ([*QUEUES], [6, 3, 1]) == (facts["queues"], facts["weights"])
