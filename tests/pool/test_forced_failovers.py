"""Masters that are replaced while they are well: a ledger says what is lost, and what runs at once, how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.jobs.client import Queue
from tests.pool.test_clusters import LAG, Ledger
from tests.pool.test_failovers import AT_ONCE
from tests.support import redis_cluster
from tests.support.eventually import eventually
from tests.support.overlapping import overlapping
from tests.support.pools import Site
from tests.support.redis_cluster import SOON, Cluster, on_cluster
from tests.support.redis_server import redis_binary, valkey_binary

#: seconds for which a replica gets nothing before it is promoted
BEHIND = 0.4
LONG = 6.0
CASES = pytest.mark.parametrize(
    ("cluster", "how"), [("redis", "TAKEOVER"), ("redis", "FORCE"), ("valkey", "TAKEOVER")], indirect=["cluster"]
)
LEASES = "[connection]\nretry_after = 12\n"


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    binary = {"redis": redis_binary, "valkey": valkey_binary}[request.param]()
    with redis_cluster.running(tmp_path / "cluster", binary=binary, replicas=True, lost_after=SOON) as found:
        yield found


@contextmanager
def at_work(cluster: Cluster, path: Path, wait_replicas: str = "") -> Iterator[tuple[Site, list[Ledger]]]:
    """Two pools, and producers of more than they bear beside long jobs: what is lost of what has run is not missed."""
    settings = replace(on_cluster(cluster.url), wait_replicas=wait_replicas)
    config = LEASES + (f"wait_replicas = {wait_replicas}\n" if wait_replicas else "")
    with ExitStack() as stack:
        sites = [Site(settings, path, stack.enter_context(closing(Queue(settings)))) for _ in range(2)]
        for name in ("one", "two"):
            flags = "--runtime-dir", str(path / name), "--workers", "2", "--queue", "urgent,default"
            stack.enter_context(sites[0].pool(*flags, config=config))
        ledgers = [Ledger(sites[0]), Ledger(sites[1], pause=0.2, mode="beat", seconds=0.5)]
        for ledger in ledgers:
            stack.enter_context(ledger.pushing())
        eventually(lambda: len(sites[0].trail(event="end")) > 100)
        yield sites[0], ledgers
        # What was lost of a settlement runs again when its lease ends.
        eventually(lambda: not any(map(sites[0].queue.size, ("urgent", "default"))), within=60)


def promote(cluster: Cluster, site: Site, how: str, *, waits: bool) -> tuple[float, float]:
    """Make a replica the master that has missed the last moments; returns when these began, and when they were over.

    Two long jobs begin meanwhile, of which the replica knows: that they have begun is lost, unless that ``waits``.
    """
    master = cluster.owner()
    replica = cluster.replica_of(master)
    for _ in range(2):
        site.push("beat", queue="urgent", delay=0.2, seconds=LONG, tag="long")
    assert 1 == master.say("WAIT", 1, 0)
    with cluster.lagging(master):
        began = time.time()
        eventually(lambda: time.time() > began + BEHIND and (waits or len(site.trail(event="start", tag="long")) > 1))
        replica.say("CLUSTER", "FAILOVER", how)
        eventually(lambda: cluster.owner() is replica)
        eventually(lambda: master.say("ROLE")[0] == b"slave")
    return began, time.time()


@pytest.mark.thorough("test_reassertion.py has the looks of a steward, test_clusters.py the ledger of a killed master")
@CASES
def test_a_forced_change_of_masters_loses_what_the_replica_had_not_got_and_overlaps_end_soon(cluster, tmp_path, how):
    with at_work(cluster, tmp_path) as (site, (ledger, long)):
        began, over = promote(cluster, site, how, waits=False)
        pushed = len(ledger.acknowledged)
        eventually(lambda: len(ledger.acknowledged) > pushed + 100)
        for one in (ledger, long):
            one.await_ends((began, over))

    lost = ledger.lost() + long.lost()
    began_twice = len(site.trail(event="start", tag="long")) - 2
    print(f"{over - began:.1f} s: lost {len(lost)}, again {len(ledger.twice())}, {began_twice}, {[*overlapping(site)]}")
    assert lost
    assert [] == ledger.twice(until=began - LAG)
    assert [] == [one for one in overlapping(site) if one.seconds > AT_ONCE or not began < one.began < over]


@pytest.mark.thorough("test_awaited_replicas.py has what each call waits for")
@CASES
def test_a_forced_change_of_masters_loses_and_overlaps_nothing_that_a_replica_must_have(cluster, tmp_path, how):
    with at_work(cluster, tmp_path, wait_replicas="1") as (site, (ledger, long)):
        promote(cluster, site, how, waits=True)
        pushed = len(ledger.acknowledged)
        eventually(lambda: len(ledger.acknowledged) > pushed + 100)
        for one in (ledger, long):
            one.await_ends()

    assert [] == ledger.lost() + long.lost()
    assert [] == [*overlapping(site)]
