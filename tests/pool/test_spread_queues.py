"""A pool whose queues are on different masters of a Redis Cluster, each in the slot of its own name, as Laravel's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuepool.jobs.client import Queue
from queuepool.stores.redis.cluster import slot_of
from tests.support.eventually import eventually
from tests.support.one_slot import each_in_one_slot
from tests.support.pools import Site
from tests.support.redis_cluster import SLOTS, Cluster, spread_on_cluster

#: on three masters, by their slots, in the order in which they are served
QUEUES = "a", "b", "c"


@pytest.fixture
def site(cluster_nodes: Cluster, tmp_path: Path) -> Iterator[Site]:
    cluster_nodes.flush()
    yield from _site(cluster_nodes, tmp_path)


def _site(cluster: Cluster, path: Path) -> Iterator[Site]:
    connection = spread_on_cluster(cluster.url)
    queue = Queue(connection)
    yield Site(connection, path, queue)
    queue.close()


def said(site: Site, verb: str, *words: str) -> str:
    return site.run(verb, *words, *site.where).stdout


def test_these_queues_are_on_three_masters():
    assert 3 == len({slot_of(queue) * 3 // SLOTS for queue in QUEUES})


def test_an_operators_day_and_each_call_is_in_one_slot(cluster_nodes, site):
    with each_in_one_slot(cluster_nodes):
        failing = site.push("raise", maxTries=1, queue="b")
        for queue in QUEUES:
            site.push(queue=queue)
        site.push(queue="{c}", delay=0.5)
        with site.pool("--queue", "a,b,{c}", "--workers", "2") as pool:
            eventually(lambda: len(site.trail(event="end")) == 4)
            eventually(lambda: failing in said(site, "failed"))
            assert "default" in site.run("status", "--all", *site.where, check=False).stdout
            site.push(queue="a")  # while all wait
            eventually(lambda: len(site.trail(event="end")) == 5)
            said(site, "retry", failing)
            eventually(lambda: pool.log().count(" job failed ") == 2)
        site.push(queue="c", delay=3600.0)
        assert "1" in said(site, "size", "c")
        said(site, "pause", "b", "--force")
        said(site, "continue", "b")
        said(site, "jobs", "c")
        said(site, "clear", "c", "--force")
        said(site, "journal")

    assert [0, 0, 0] == [site.queue.size(queue) for queue in QUEUES]


def test_a_worker_does_not_start_for_jobs_whose_limits_it_could_not_keep(site):
    refused = site.run("work", *site.where, "--modules", "tests.support.limitapp", "--stop-when-empty", check=False)

    assert refused.returncode
    assert "a job with limits needs all keys of a cluster in one slot" in refused.stderr
