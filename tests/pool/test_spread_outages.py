"""A pool on a Redis Cluster one of whose nodes is away: it stops only the queues that are there."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.stores.redis.cluster import slot_of
from tests.pool.test_clusters import Ledger
from tests.support import redis_cluster
from tests.support.eventually import eventually
from tests.support.meters import counts_in, of_job
from tests.support.pools import RunningPool, Site
from tests.support.processes import halted, kill
from tests.support.redis_cluster import Cluster, Node, spread_on_cluster

#: many jobs in one worker
BESIDE = ("--queue", "b,a", "--workers", "1", "--concurrency", "6", "--modules", "tests.support.besideapp")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Without replicas; a node that is away is not taken for lost, so that the others serve their slots."""
    with redis_cluster.running(tmp_path / "cluster") as found:
        yield found


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    connection = spread_on_cluster(cluster.url)
    queue = Queue(connection)
    yield Site(connection, tmp_path, queue)
    queue.close()


def accepted(site: Site, queue: str) -> str:
    """The id of a job that was pushed; empty if the store was away."""
    with suppress(StoreDown):
        return site.push(queue=queue)
    return ""


@pytest.mark.thorough("ten seconds; stores/test_spread_queues.py has a node that is away")
def test_a_node_that_is_away_stops_only_its_queues(cluster, site):
    lost = cluster.owner(slot_of("b"))  # which has the home's slot, too
    with site.pool("--queue", "b,a,c", "--workers", "2") as pool:
        for queue in "abc":
            site.push(queue=queue)
        eventually(lambda: len(site.trail(event="end")) == 3)
        lost.kill()
        with pytest.raises(StoreDown):
            site.push(queue="b")
        pushed = {site.push(queue=queue) for queue in "acacac"}
        eventually(lambda: pushed <= {note["id"] for note in site.trail(event="end")})
        eventually(lambda: "hash tag {b}" in pool.log())
        lost.start()
        late = eventually(lambda: accepted(site, "b"))
        eventually(lambda: late in {note["id"] for note in site.trail(event="end")}, within=60.0)

    assert {1} == set(Counter(note["id"] for note in site.trail(event="end")).values())


@pytest.mark.thorough("a cluster of its own; stores/test_spread_queues.py has a node that is away")
def test_the_jobs_of_a_worker_that_died_go_on_while_another_node_is_away(cluster, site):
    """It has served that node's queue, too; the steward has to tell each node that it is dead."""
    with site.pool("--queue", "a,c", "--workers", "1") as pool:
        served = site.push(queue="c")
        eventually(lambda: site.trail(event="end", id=served))
        gate = site.path / "gate"
        cut = site.push("until", gate=str(gate), queue="a", maxTries=3)
        waiting = site.push(queue="a")
        eventually(lambda: site.trail(event="start", id=cut))
        cluster.owner(slot_of("c")).kill()
        kill(*pool.workers())
        gate.touch()
        eventually(lambda: {cut, waiting} <= {note["id"] for note in site.trail(event="end")}, within=20.0)

    assert [1, 2] == [note["attempt"] for note in site.trail(event="start", id=cut)]


@pytest.mark.thorough("ten seconds; stores/test_spread_queues.py has a node that is asked again")
def test_a_stop_settles_what_is_on_a_node_that_is_back_although_the_steward_has_left_it_alone(cluster, site):
    node = cluster.owner(slot_of("c")).process.pid
    with site.pool("--queue", "a,c", "--workers", "1") as pool:
        cut = site.push("sleep", seconds=60.0, queue="c", maxTries=3)
        eventually(lambda: site.trail(event="start", id=cut))
        with halted(node):
            kill(*pool.workers())
            eventually(lambda: re.search(r"steward pid=\d+ .*hash tag {c}", pool.log()))
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait()

    assert "killed: STOP" not in pool.log()
    assert 1 == site.queue.stores.queue.sizes("c").ready


def counted(pool: RunningPool) -> tuple[int, ...]:
    """How many attempts at jobs of queue b have ended in each way, as the steward has published it."""
    counts = of_job(counts_in(Path(pool.runtime)), "beside", "b")
    return counts.done, counts.released, counts.failed, counts.given_back


def all_ended_on_a_node_that_hangs(cluster: Cluster, site: Site) -> AbstractContextManager[set[str]]:
    """As ``all_ended_while_halted``, with the node of queue b."""
    return all_ended_while_halted(cluster.owner(slot_of("b")), site)


@contextmanager
def all_ended_while_halted(node: Node, site: Site) -> Iterator[set[str]]:
    """While this node is halted, three jobs of queue b have succeeded and three failed; gives those that failed."""
    gate = str(site.path / "gate")
    beside = partial(site.push, name="beside", queue="b", maxTries=2)
    failing = {beside("when", gate=gate, then="raise") for _ in range(3)}
    done = {beside("until", gate=gate) for _ in range(3)}
    eventually(lambda: len(site.trail(event="start")) == len(failing | done))
    with halted(node.process.pid):
        Path(gate).touch()
        eventually(lambda: len(site.trail(event="left")) == len(failing | done))
        yield failing


def begun(site: Site) -> list[int]:
    """How often each job has begun, the seldom ones first."""
    return sorted(Counter(note["id"] for note in site.trail(event="start")).values())


def test_jobs_side_by_side_that_have_ended_on_a_node_that_is_away_hold_up_no_others_and_are_settled_then(cluster, site):
    with site.pool(*BESIDE) as pool:
        with all_ended_on_a_node_that_hangs(cluster, site) as failing:
            for _ in range(20):
                site.push(name="beside", queue="a", tag="other")
            eventually(lambda: len(site.trail(event="end", tag="other")) == 20)
            assert not site.trail(event="start", attempt=2)
        eventually(lambda: {note["id"] for note in site.trail(event="after_failed")} == failing)
        eventually(lambda: site.queue.size("b") == 0)
        eventually(lambda: counted(pool) == (3, 3, 3, 0))

    assert [1] * 23 + [2] * 3 == begun(site)


@pytest.mark.thorough("a cluster of its own, and half a minute; stores/test_spread_queues.py has the error")
def test_queues_whose_replica_is_away_hold_up_no_others_and_their_jobs_are_settled_then(own_cluster, tmp_path):
    """With ``wait_replicas``, nothing of them counts meanwhile; the same processes serve and renew the others."""
    connection = replace(spread_on_cluster(own_cluster.url), wait_replicas="1", retry_after=6.0)
    with closing(Queue(connection)) as queue:
        site = Site(connection, tmp_path, queue)
        with site.pool(*BESIDE, config="[connection]\nwait_replicas = 1\nretry_after = 6\n"):
            with all_ended_while_halted(own_cluster.replica_of(own_cluster.owner(slot_of("b"))), site) as failing:
                outlasts = site.push("until", name="beside", queue="a", gate=str(tmp_path / "long"))
                for _ in range(20):
                    site.push(name="beside", queue="a", tag="other")
                eventually(lambda: len(site.trail(event="end", tag="other")) == 20)
                its_lease_is_over = time.time() + 1.5 * connection.retry_after  # unless it is renewed
                eventually(lambda: time.time() > its_lease_is_over)
            (tmp_path / "long").touch()
            eventually(lambda: {note["id"] for note in site.trail(event="after_failed")} == failing)
            eventually(lambda: queue.size("a") + queue.size("b") == 0)

        assert 1 == len(site.trail(event="start", id=outlasts))
        assert 20 == len(site.trail(event="start", tag="other"))


@pytest.mark.thorough("a cluster of its own, and ten seconds")
def test_a_worker_that_leaves_while_a_node_is_away_waits_for_it_and_its_successor_works(cluster, site):
    with site.pool(*BESIDE, "--max-jobs", "6"):
        with all_ended_on_a_node_that_hangs(cluster, site) as failing:
            site.push(name="beside", queue="a", tag="other")
            eventually(lambda: site.trail(event="end", tag="other"))
        eventually(lambda: {note["id"] for note in site.trail(event="after_failed")} == failing)

    assert [1, 1, 1, 1, 2, 2, 2] == begun(site)
    assert 0 == site.queue.size("b")


@pytest.mark.thorough("as above")
def test_a_stop_does_not_wait_for_a_node_that_is_away_and_the_steward_gives_back_what_failed_there(cluster, site):
    with site.pool(*BESIDE) as pool:
        with all_ended_on_a_node_that_hangs(cluster, site) as failing:
            pool.signal(signal.SIGTERM)
            eventually(lambda: not pool.pids("queuepool: worker"))
        assert 0 == pool.wait()
        assert "killed: STOP" not in pool.log()
    assert 3 == site.queue.stores.queue.sizes("b").ready
    with site.pool(*BESIDE):
        eventually(lambda: {note["id"] for note in site.trail(event="after_failed")} == failing)

    assert [1, 1, 1, 3, 3, 3] == begun(site)
    assert {1, 2} == {note["attempt"] for note in site.trail(event="start") if note["id"] in failing}


#: the queue of the node that is away is the first, and has most of the turns
HOW = {
    "weights": ("--queue", "b*5,a*2,c*1"),
    "lanes": ("--queue", "b,a,c", "--concurrency", "8"),
    "weights of lanes": ("--queue", "b*5,a*2,c*1", "--concurrency", "8"),
}


@contextmanager
def pushing(site: Site) -> Iterator[list[Ledger]]:
    """Push to each of the queues, by a thread of its own; so slowly that not all workers hold a job of one of them."""
    ledgers = [Ledger(site, queue, 0.04) for queue in "abc"]
    with ExitStack() as stack:
        for ledger in ledgers:
            stack.enter_context(ledger.pushing())
        yield ledgers


def served(site: Site, since: float) -> set[str]:
    """The queues whose jobs have begun since then, fifty of each."""
    begun = Counter(note["tag"][:1] for note in site.trail(event="start") if note["at"] > since)
    return {queue for queue, count in begun.items() if count > 50}


@pytest.mark.thorough("a cluster of its own, and ten seconds")
@pytest.mark.parametrize("flags", HOW.values(), ids=HOW)
def test_beside_a_node_that_hangs_the_other_queues_go_on_by_weight_and_in_lanes(cluster, site, flags):
    with site.pool(*flags, "--workers", "3") as pool, pushing(site) as ledgers:
        eventually(lambda: served(site, 0.0) == {*"abc"})
        with halted(cluster.owner(slot_of("b")).process.pid):
            eventually(lambda: "hash tag {b}" in pool.log())
            since = time.time()
            eventually(lambda: served(site, since) == {*"ac"})
        back = time.time()
        eventually(lambda: served(site, back) == {*"abc"})
        for ledger in ledgers:
            ledger.await_ends()

    assert [] == ledgers[0].twice()
