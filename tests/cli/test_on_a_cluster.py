"""The commands on a Redis Cluster: all that they do is in the slot of its prefix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuepool.jobs.client import Queue
from tests.support.eventually import eventually
from tests.support.one_slot import all_in_one_slot
from tests.support.pools import Site
from tests.support.redis_cluster import Cluster, on_cluster


@pytest.fixture
def site(cluster_nodes: Cluster, tmp_path: Path) -> Iterator[Site]:
    cluster_nodes.flush()
    connection = on_cluster(cluster_nodes.url)
    queue = Queue(connection)
    yield Site(connection, tmp_path, queue)
    queue.close()


def said(site: Site, verb: str, *words: str) -> str:
    return site.run(verb, *words, *site.where).stdout


def test_an_operators_day_is_in_one_slot(cluster_nodes, site):
    with all_in_one_slot(cluster_nodes.owner()):
        failing = site.push("raise", maxTries=1)
        site.push()
        site.push(delay=3600.0)
        said(site, "pause", "high", "--force")
        with site.pool():
            eventually(lambda: site.queue.size("default") == 1)
            assert "default" in site.run("status", "--all", *site.where, check=False).stdout
            said(site, "restart")

        assert failing in said(site, "failed")
        assert "1" in said(site, "size", "default")
        said(site, "continue", "high")
        said(site, "retry", failing)
        site.work()
        said(site, "forget", failing)
        said(site, "jobs", "default")
        said(site, "clear", "default", "--force")
        said(site, "journal")
        said(site, "history")

    assert (1, 0) == (len(site.trail(event="end")), site.queue.size("default"))
