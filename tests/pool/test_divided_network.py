"""A pool on each side of a network that is divided: both sides have a primary, and a ledger says what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.chaos.hosts import Host, are_allowed
from tests.pool.test_clusters import LAG, Ledger
from tests.support import redis_cluster
from tests.support.divided import Network, network
from tests.support.eventually import eventually
from tests.support.overlapping import overlapping
from tests.support.pools import RunningPool, Site
from tests.support.redis_cluster import SOON, Node, on_cluster
from tests.support.sentinels import NAME, Process, Sentinels

RETRY_AFTER = 6
#: seconds after which a primary that hears no replica takes no writes, and until it, or a master alone, notices that
MAX_LAG, NOTICES = 2, 3.0
FEW = (f"min-replicas-max-lag {MAX_LAG}", "min-replicas-to-write 1")


class Protection(NamedTuple):
    """What stops the side of the old primary: settings of servers and pools, and for how long it still takes writes."""

    of_servers: Sequence[str]
    wait_replicas: str
    stops: float

    @property
    def over(self) -> float:
        """Seconds after which nothing is left of what ran when the network was divided."""
        return self.stops + RETRY_AFTER


AWAITED = Protection((), "all", 0.0)
PROTECTIONS = {
    "sentinels": Protection(FEW, "0", MAX_LAG + NOTICES),
    "sentinels, awaited": AWAITED,
    "cluster": Protection((), "0", SOON + NOTICES),
    "cluster, awaited": AWAITED,
}


class Producer(Ledger):
    """On a host of its own."""

    def __init__(self, host: Host, site: Site) -> None:
        super().__init__(site, pause=0.05)
        self._host = host

    def _push(self) -> None:
        self._host.enter()
        super()._push()

    def goes_on(self) -> bool:
        """Whether it soon pushes again."""
        before = len(self.acknowledged)
        return eventually(lambda: len(self.acknowledged) > before + 50)


@dataclass
class Side:
    """A host with a pool and a producer."""

    host: Host
    site: Site
    producer: Producer
    config: str

    @contextmanager
    def pool(self, name: str) -> Iterator[RunningPool]:
        where = "--runtime-dir", str(self.site.path / name), "--workers", "2"
        with self.site.pool(*where, parent=self.host.preface, config=self.config) as pool:
            yield pool


@dataclass
class Divided:
    """The old primary on the first host, those that may take its place on the second, and both sides."""

    net: Network
    old: Process | Node
    others: Sequence[Process | Node]
    here: Side
    there: Side

    def has_another(self) -> bool:
        return any(is_primary(one) for one in self.others)


def is_primary(server: Process | Node) -> bool:
    return server.say("ROLE")[0] in ("master", b"master")


@contextmanager
def at_sentinels(path: Path, protection: Protection) -> Iterator[Divided]:
    """A sentinel is beside the primary, and two beside the two replicas."""
    with ExitStack() as stack:
        net = stack.enter_context(network())
        here, there = net.places
        found = Sentinels(path, servers_at=[here, there, there], sentinels_at=[here, there, there])
        stack.callback(found.kill)
        for server in found.servers:
            server.configure(protection.of_servers)
        found.start()
        nearest = [[*found.sentinels[number:], *found.sentinels[:number]] for number in range(2)]
        hosts = [",".join(f"{one.address}:{one.port}" for one in near) for near in nearest]
        made = [ConnectionSettings(url=f"redis+sentinel://{near}/{NAME}/0") for near in hosts]
        yield Divided(net, found.servers[0], found.servers[1:], *sides(stack, net, path, protection, made))


@contextmanager
def on_a_cluster(path: Path, protection: Protection) -> Iterator[Divided]:
    """The master of the jobs is alone."""
    with ExitStack() as stack:
        net = stack.enter_context(network())
        here, there = net.places
        places = [there, here, there, there, there, there]
        running = redis_cluster.running(path / "cluster", replicas=True, lost_after=SOON, places=places)
        found = stack.enter_context(running)
        old = found.owner()
        assert (old.address, old) == (here.address, found.nodes[1])
        made = [on_cluster(found.url)] * 2
        yield Divided(net, old, [found.replica_of(old)], *sides(stack, net, path, protection, made))


def sides(
    stack: ExitStack, net: Network, path: Path, protection: Protection, connections: Sequence[ConnectionSettings]
) -> Iterator[Side]:
    config = f"[connection]\nretry_after = {RETRY_AFTER}\nwait_replicas = {protection.wait_replicas}\n"
    for host, settings in zip(net.hosts, connections, strict=True):
        connection = replace(settings, wait_replicas=protection.wait_replicas)
        site = Site(connection, path, stack.enter_context(closing(Queue(connection))))
        yield Side(host, site, Producer(host, site), config)


@pytest.mark.thorough("half a minute, and hosts of their own")
@pytest.mark.parametrize("kind", PROTECTIONS)
def test_both_sides_of_a_divided_network_have_a_primary(tmp_path, kind):
    """That of the old one stops when its protection says so: what it is told until then is lost."""
    if not are_allowed():
        pytest.skip("needs root: its hosts are namespaces")
    protection = PROTECTIONS[kind]
    store = (on_a_cluster if "cluster" in kind else at_sentinels)(tmp_path, protection)
    with store as both, both.here.pool("here") as pool_here:
        here, there = both.here.producer, both.there.producer
        both.here.site.push("beat", seconds=3.0 * protection.over, tag="long")
        eventually(lambda: both.here.site.trail(event="beat"))
        with both.there.pool("there"), here.pushing(), there.pushing():
            assert here.goes_on()
            assert there.goes_on()
            both.net.divide()
            divided = time.time()
            eventually(both.has_another)
            # Where the only replica was promoted, nobody confirms anything to it until all is whole again.
            assert kind == "cluster, awaited" or there.goes_on()
            assert is_primary(both.old)
            eventually(lambda: time.time() > divided + protection.over)
            pool_here.titles()
            both.net.join()
            joined = time.time()
            assert here.goes_on()
            here.stop()
            there.stop()
            eventually(lambda: both.here.site.queue.size() == 0, within=60)

    notes = both.here.site.trail()
    pushed = [at - divided for _, at in here.acknowledged.values() if divided < at < joined]
    ran = [note["at"] - divided for note in notes if note["pid"] in pool_here.seen and note["at"] < joined]
    lost = [here.acknowledged[job][1] - divided for job in here.lost()]
    at_once = [*overlapping(both.here.site)]
    print(f"pushed until {max(pushed, default=0.0):.1f}, ran until {max(ran):.1f}, lost {len(lost)}, at once {at_once}")
    assert [] == there.lost()
    assert max(ran) < protection.over
    if protection is AWAITED:
        assert [] == lost + at_once
    else:
        assert max(pushed) < protection.stops
        assert all(-LAG < at < protection.stops for at in lost)
        assert all(divided - LAG < one.again and one.until < divided + protection.over for one in at_once)
