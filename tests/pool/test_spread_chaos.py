"""Two pools and their producers on a cluster whose nodes are killed and frozen and whose slots move; a ledger rules."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.jobs.client import Queue
from queuepool.stores.redis.cluster import slot_of
from tests.chaos.plant import Plant
from tests.pool.test_clusters import LAG, Ledger
from tests.pool.test_failovers import overlaps
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site
from tests.support.processes import halted, kill
from tests.support.redis_cluster import SOON, Cluster, Node, spread_on_cluster

#: on all three masters
QUEUES = "abcd"
#: workers of one job that share by weights, and lanes that do not
POOLS = {
    "weights": ("--queue", "b*5,a*3,c*2,d*1", "--workers", "3"),
    "lanes": ("--queue", "c,a,b,d", "--workers", "2", "--concurrency", "8"),
}
#: a worker goes on without what a node that is away did not end
FORGETFUL = Plant(
    "twice",
    (
        (
            "stores/redis/spread/reserving.py",
            """        parts = [
            self._take(group, names, tag, 0, [lease for lease in others if lease.queue in names])
            for group, names in self._groups.parts([lease.queue for lease in others]).items()
        ]
""",
            """        parts = []
        for group, names in self._groups.parts([lease.queue for lease in others]).items():
            try:
                parts.append(self._take(group, names, tag, 0, [lease for lease in others if lease.queue in names]))
            except PartDown:
                pass
""",
        ),
    ),
)
#: one with lanes goes on as if it had ended that
DROPPING = Plant("twice", (("worker/lane_endings.py", "            self._batch.put_off_deletion(away)\n", ""),))
#: seconds of a job before a worker's death in which it may have ended without its worker's knowledge
_AT_ONCE = 0.05
#: a worker that begins no job for so many seconds may wait for a node, to settle a job there; after so many seconds it
#: has begun all jobs that it reserved together
_WAITS, _HOLDS = 0.3, 1.5


class Chaos:
    """Each deed waits until all are at work again; ``lossy``: when what was acknowledged may have been lost."""

    def __init__(self, cluster: Cluster, site: Site, pools: list[RunningPool]) -> None:
        self._cluster, self._site, self._pools = cluster, site, pools
        self.lossy: list[tuple[float, float]] = []

    def run(self) -> None:
        self._do(self._kill_workers, self._move, self._freeze, self._kill_master, self._freeze_for_long)

    def freeze_often(self) -> None:
        self._do(*[self._freeze] * 8)

    def _do(self, *deeds: Callable[[], object]) -> None:
        for deed in deeds:
            deed()
            self._await_work()

    def _kill_workers(self) -> None:
        for pool in self._pools:
            worker = random.choice(eventually(pool.workers))
            kill(worker)
            with self._site.trail_file.open("a") as trail:
                trail.write(json.dumps({"event": "killed", "pid": worker, "at": time.time(), "tag": ""}) + "\n")

    def _move(self) -> None:
        self._cluster.slot = slot_of("a")
        for _ in self._cluster.move():
            pass

    def _freeze(self) -> None:
        """For less time than the others take it for lost after."""
        with halted(self._cluster.owner(slot_of("b")).process.pid):
            until = time.time() + SOON / 2
            eventually(lambda: time.time() > until)

    def _kill_master(self) -> None:
        master = self._cluster.owner(slot_of("c"))
        master.kill()
        killed = time.time()
        self.lossy.append((killed - LAG, killed))
        eventually(lambda: self._cluster.owner(slot_of("c")) is not master)
        master.start()
        self._await_follower(master)

    def _freeze_for_long(self) -> None:
        """Its replica takes its place, and what it finds in its sockets afterwards is lost."""
        master = self._cluster.owner(slot_of("d"))
        replica = self._cluster.replica_of(master)
        frozen = time.time()
        with halted(master.process.pid):
            eventually(lambda: replica.say("ROLE")[0] == b"master")
        self._await_follower(master)
        self.lossy.append((frozen - LAG, time.time()))

    def _await_follower(self, node: Node) -> None:
        eventually(lambda: node.client.info("replication").get("master_link_status") == "up")

    def _await_work(self) -> None:
        since = time.time()
        eventually(
            lambda: {*QUEUES} == {note["tag"][0] for note in self._site.trail(event="end") if note["at"] > since}
        )


@contextmanager
def pools(site: Site, config: str) -> Iterator[list[RunningPool]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(site.pool("--runtime-dir", str(site.path / name), *flags, config=config))
            for name, flags in POOLS.items()
        ]


def ruling(
    cluster: Cluster, path: Path, wait_replicas: str = "", deeds: Callable[[Chaos], object] = Chaos.run
) -> dict[str, list[str]]:
    """What became of the acknowledged jobs and should not have; fails if some were lost."""
    settings = replace(spread_on_cluster(cluster.url), wait_replicas=wait_replicas)
    config = "[connection]\nretry_after = 15\n" + (f"wait_replicas = {wait_replicas}\n" if wait_replicas else "")
    with ExitStack() as stack:
        site, other = (Site(settings, path, stack.enter_context(closing(Queue(settings)))) for _ in range(2))
        ledgers = [Ledger(site, queue, 0.03, maxTries=50) for queue in QUEUES]
        # Some of queue b end while its node is frozen, which is what the planted faults need.
        ledgers += [Ledger(other, queue, 0.1 if queue == "b" else 1.5, mode="sleep", seconds=0.5, maxTries=50)
                    for queue in QUEUES]  # fmt: skip
        ledgers += [Ledger(other, queue, 0.5, mode="release", maxTries=50) for queue in QUEUES]
        chaos = Chaos(cluster, site, stack.enter_context(pools(site, config)))
        for ledger in ledgers:
            stack.enter_context(ledger.pushing())
        deeds(chaos)
        lossy = [] if wait_replicas else chaos.lossy
        for ledger in ledgers:
            ledger.await_ends(*lossy)
        eventually(lambda: not any(map(site.queue.size, QUEUES)), within=60.0)
        print(f"acknowledged {sum(len(ledger.acknowledged) for ledger in ledgers)}")
        return {"twice": [*twice(site) - at_risk(site, lossy)], "overlaps": [*overlaps(site)]}


def twice(site: Site) -> set[str]:
    """The jobs that have run more often than they asked for: some ask for a second time, by a release."""
    runs = Counter((note["id"], note["mode"]) for note in site.trail(event="end"))
    return {identity for (identity, mode), count in runs.items() if count > 1 + (mode == "release")}


def at_risk(site: Site, lossy: Sequence[tuple[float, float]]) -> set[str]:
    """The jobs whose end may have been lost: with a master, or with their worker, which may not have known of it."""
    killed = {note["pid"]: note["at"] for note in site.trail(event="killed")}
    starts: dict[int, list[float]] = {}
    for note in site.trail(event="start"):
        starts.setdefault(note["pid"], []).append(note["at"])
    return {
        note["id"] for note in site.trail(event="end")
        if any(note["at"] < last and settled_by(note["at"], starts[note["pid"]]) > first for first, last in lossy)
        or note["at"] > killed.get(note["pid"], float("inf")) - _AT_ONCE
    }  # fmt: skip


def settled_by(end: float, starts: Sequence[float]) -> float:
    """The latest moment at which the end of a job was settled.

    Its worker settles together what it reserved together, and may wait for another node. Then it begins no job.
    """
    held_until = end
    for start in (start for start in starts if start > end):
        if start - held_until > _WAITS:
            return start
        if start - end > _HOLDS:
            return end
        held_until = start
    return float("inf")


@pytest.mark.thorough("a cluster of its own, and a minute")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("wait_replicas", ["", "all"], ids=["", "with what all replicas have"])
def test_each_acknowledged_job_runs_once_but_for_what_a_replica_had_not_got(own_cluster, tmp_path, wait_replicas):
    assert {"twice": [], "overlaps": []} == ruling(own_cluster, tmp_path, wait_replicas)


@pytest.mark.thorough("as above")
@pytest.mark.timeout(1500)
@pytest.mark.real_start
@pytest.mark.parametrize("plant", [FORGETFUL, DROPPING], ids=["in the store", "in lanes"])
def test_a_fault_that_is_planted_is_found(own_cluster, tmp_path, plant):
    """By the next run, if none of the jobs of this one ended at the wrong moment."""
    places = [tmp_path / str(number) for number in range(4)]
    for place in places:
        place.mkdir()
        plant.write(place)

    assert any(ruling(own_cluster, place, deeds=Chaos.freeze_often)[plant.rule] for place in places)
