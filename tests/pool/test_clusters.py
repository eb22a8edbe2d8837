"""A pool on a Redis Cluster whose nodes fail and whose slot moves; a ledger of what was pushed and what has run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis

from queuepool.errors import StoreError
from queuepool.jobs.client import Queue
from queuepool.stores.redis.cluster import slot_of
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_cluster import Cluster, Node, on_cluster, spread_on_cluster

#: seconds that a replica may lag behind its master on a crowded machine, and so what a killed master may lose
LAG = 0.5


@pytest.fixture(params=["one slot", pytest.param("its own", marks=pytest.mark.thorough("the same connection to it"))])
def site(request: pytest.FixtureRequest, own_cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    """In the slot of the prefix, or each queue in its own."""
    connection = on_cluster(own_cluster.url)
    if request.param == "its own":
        connection, own_cluster.slot = spread_on_cluster(own_cluster.url), slot_of("default")
    queue = Queue(connection)
    yield Site(connection, tmp_path, queue)
    queue.close()


class Ledger:
    """Pushes jobs from another thread, and knows which pushes were acknowledged, and when.

    ``pause``: seconds between two; ``what``: of the jobs, besides their tags.
    """

    def __init__(self, site: Site, queue: str = "default", pause: float = 0.008, **what: Any) -> None:
        self.site = site
        self.queue = queue
        self._pause, self._what = pause, what
        self._kind = what.get("mode", "")
        #: when each push began and had been acknowledged
        self.acknowledged: dict[str, tuple[float, float]] = {}
        self._runs, self._seen = Counter[str](), 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._push)

    @contextmanager
    def pushing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self.stop()

    def await_ends(self, *but: tuple[float, float]) -> None:
        """Stop, and wait until all that was acknowledged has run, but for what was under way between these times."""
        self.stop()
        due = {
            identity for identity, (began, at) in self.acknowledged.items()
            if all(at <= first or began > last for first, last in but)
        }  # fmt: skip
        eventually(lambda: due <= self._ended().keys(), within=60.0)

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()

    def twice(self, until: float = float("inf")) -> list[str]:
        """The jobs that have run more than once, the first time before this time."""
        first = {note["id"]: note["at"] for note in reversed(self.site.trail(event="end"))}
        return [identity for identity, runs in self._ended().items() if runs > 1 and first[identity] < until]

    def lost(self) -> list[str]:
        """What was acknowledged and has not run; ask once nothing waits any more."""
        return [*self.acknowledged.keys() - self._ended().keys()]

    def _ended(self) -> Counter[str]:
        """Counts on from the last look."""
        notes = self.site.trail()
        self._runs.update(note["id"] for note in notes[self._seen :] if note.get("event") == "end")
        self._seen = len(notes)
        return self._runs

    def _push(self) -> None:
        for number in count():
            if self._ends.wait(self._pause):
                break
            began = time.time()
            try:
                identity = self.site.push(queue=self.queue, tag=f"{self.queue}{number}{self._kind}", **self._what)
            except StoreError:
                continue
            self.acknowledged[identity] = began, time.time()


def test_a_slot_that_is_moved_key_by_key_under_load_loses_nothing_and_doubles_nothing(own_cluster, site):
    for number in range(300):
        site.push(queue=f"later{number}", delay=3600.0)  # keys that take their time
    ledger = Ledger(site)
    with site.pool("--workers", "2"), ledger.pushing():
        eventually(lambda: len(site.trail(event="end")) > 100)
        for _ in range(2):
            before = own_cluster.owner(), len(ledger.acknowledged)
            for _ in own_cluster.move():
                pass
            eventually(lambda before=before: len(ledger.acknowledged) > before[1] + 100)
            assert before[0] is not own_cluster.owner()
        ledger.await_ends()

    assert [] == ledger.twice()


@pytest.mark.thorough("the other two change masters, too: key by key, and by a kill")
def test_a_planned_change_of_masters_loses_nothing_and_doubles_nothing(own_cluster, site):
    ledger = Ledger(site)
    with site.pool("--workers", "2"), ledger.pushing():
        eventually(lambda: len(site.trail(event="end")) > 100)
        master = own_cluster.owner()
        own_cluster.replica_of(master).say("CLUSTER", "FAILOVER")
        eventually(lambda: own_cluster.owner() is not master)
        pushed = len(ledger.acknowledged)
        eventually(lambda: len(ledger.acknowledged) > pushed + 100)
        ledger.await_ends()

    assert [] == ledger.twice()


def test_a_killed_master_loses_no_more_than_its_replica_had_not_got_yet(own_cluster, site):
    ledger = Ledger(site)
    waiting = {site.push("sleep", seconds=0.02) for _ in range(200)}  # what is lost of it would not run
    assert own_cluster.owner().say("WAIT", 1, 0)
    with site.pool("--workers", "2") as pool, ledger.pushing():
        eventually(lambda: len(site.trail(event="end")) > 100)
        master = own_cluster.owner()
        master.kill()
        killed = time.time()
        eventually(lambda: own_cluster.owner())
        pushed = len(ledger.acknowledged)
        eventually(lambda: len(ledger.acknowledged) > pushed + 100, within=60.0)
        ledger.await_ends((killed - LAG, killed))
        eventually(lambda: waiting <= {note["id"] for note in site.trail(event="end")})
        eventually(lambda: "store regained" in pool.log())

    assert [] == ledger.twice(until=killed - LAG)


def test_horizon_shows_a_pool_of_a_cluster_from_another_slot(site: Site, own_cluster: Cluster) -> None:
    with site.pool("--horizon", "{horizon}:") as pool:
        site.push()
        eventually(lambda: _is_counted(own_cluster))
        assert "Horizon" not in pool.log()


def _is_counted(cluster: Cluster) -> bool:
    """Whether a node has Horizon's count of what the queue has done."""
    return any(_throughput(node) for node in cluster.living())


def _throughput(node: Node) -> bytes | None:
    try:
        return bytes(node.say("HGET", "{horizon}:queue:default", "throughput") or b"")
    except redis.ResponseError:  # another node has the slot
        return None
