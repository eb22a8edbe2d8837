"""A pool on each side of a network that is divided: both sides have a primary, and a ledger says what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.chaos.hosts import Host, are_allowed
from tests.pool.test_clusters import LAG, Ledger
from tests.support.divided import Network, network
from tests.support.eventually import eventually
from tests.support.overlapping import overlapping
from tests.support.pools import RunningPool, Site
from tests.support.sentinels import NAME, Sentinels

RETRY_AFTER = 6
#: seconds after which a primary takes no writes that hears no replica; it looks once a second
MAX_LAG = 2
STOPS = MAX_LAG + 2.0
#: of what was running when the network was divided nothing may be left after so many seconds
OVER = STOPS + RETRY_AFTER
PROTECTIONS = {
    "min-replicas": ([f"min-replicas-max-lag {MAX_LAG}", "min-replicas-to-write 1"], "0"),
    "wait_replicas": ([], "all"),
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


@contextmanager
def sides(path: Path, servers: list[str], wait_replicas: str) -> Iterator[tuple[Network, Sentinels, Side, Side]]:
    """The primary and a sentinel are on the first host, two replicas and two sentinels on the other one."""
    config = f"[connection]\nretry_after = {RETRY_AFTER}\nwait_replicas = {wait_replicas}\n"
    with ExitStack() as stack:
        net = stack.enter_context(network())
        here, there = net.places
        found = Sentinels(path, servers_at=[here, there, there], sentinels_at=[here, there, there])
        stack.callback(found.kill)
        for server in found.servers:
            server.configure(servers)
        found.start()
        made = list[Side]()
        for number, host in enumerate(net.hosts):
            near = [*found.sentinels[number:], *found.sentinels[:number]]
            url = f"redis+sentinel://{','.join(f'{one.address}:{one.port}' for one in near)}/{NAME}/0"
            connection = ConnectionSettings(url=url, wait_replicas=wait_replicas)
            site = Site(connection, path, stack.enter_context(closing(Queue(connection))))
            made.append(Side(host, site, Producer(host, site), config))
        yield net, found, *made


@pytest.mark.thorough("half a minute, and hosts of their own")
@pytest.mark.parametrize("protection", PROTECTIONS)
def test_both_sides_of_a_divided_network_have_a_primary(tmp_path, protection):
    """The side of the old one stops when its protection says so: what it is told until then is lost."""
    if not are_allowed():
        pytest.skip("needs root: its hosts are namespaces")
    with sides(tmp_path, *PROTECTIONS[protection]) as (net, sentinels, here, there), here.pool("here") as pool_here:
        here.site.push("beat", seconds=3.0 * OVER, tag="long")
        eventually(lambda: here.site.trail(event="beat"))
        with there.pool("there"), here.producer.pushing(), there.producer.pushing():
            assert here.producer.goes_on()
            assert there.producer.goes_on()
            net.divide()
            divided = time.time()
            old, *replicas = sentinels.servers
            eventually(lambda: "master" in [one.say("ROLE")[0] for one in replicas])
            assert there.producer.goes_on()
            assert "master" == old.say("ROLE")[0]
            eventually(lambda: time.time() > divided + OVER)
            pool_here.titles()
            net.join()
            joined = time.time()
            assert here.producer.goes_on()
            for side in (here, there):
                side.producer.stop()
            eventually(lambda: here.site.queue.size() == 0, within=60)

    meanwhile = [at - divided for _, at in here.producer.acknowledged.values() if divided < at < joined]
    ran = [note["at"] - divided for note in here.site.trail() if note["pid"] in pool_here.seen and note["at"] < joined]
    lost = [here.producer.acknowledged[job][1] - divided for job in here.producer.lost()]
    both = [*overlapping(here.site)]
    print(
        f"pushed {len(meanwhile)} until {max(meanwhile, default=0.0)}, ran until {max(ran)}, lost {len(lost)}, {both}"
    )
    assert [] == there.producer.lost()
    assert max(ran) < OVER
    if protection == "wait_replicas":
        assert [] == lost
        assert [] == both
    else:
        assert max(meanwhile) < STOPS
        assert all(-LAG < at < STOPS for at in lost)
        assert all(divided - LAG < one.again and one.until < divided + OVER for one in both)
