"""Requests that reach the server after their sender gave them up do no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from queuepool.stores.redis.scripts import script
from tests.support.eventually import eventually
from tests.support.late_proxy import LateProxy
from tests.support.pools import Site

RESERVE, RECLAIM, CLEAR, PUT, REMOVE = (
    script(name)[1].encode() for name in ("reserve", "reclaim", "clear", "put_value", "remove_value")
)
#: seconds, of a person; a busy machine needs a tenth of it to answer
PATIENCE = 2.0


@pytest.fixture
def network(redis_socket: str, tmp_path: Path) -> Iterator[LateProxy]:
    with LateProxy(redis_socket, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def behind(site: Site, network: LateProxy) -> Iterator[Site]:
    """A site whose pools reach the server through the network."""
    through = replace(site.connection, url=f"unix://{network.path}")
    queue = Queue(site.connection)
    yield Site(through, site.path, queue)
    queue.close()


def busy(behind: Site, gate: Path, workers: int) -> None:
    """Each worker runs one job until the gate is there."""
    for _ in range(workers):
        behind.push("until", gate=str(gate))
    eventually(lambda: workers == len(behind.trail(event="start")))


def test_a_reclaim_that_comes_late_does_not_give_a_running_job_to_a_second_worker(behind, network, tmp_path):
    gate = tmp_path / "gate"
    with behind.pool("--workers", "2"):
        network.hold_the_next(RESERVE, RECLAIM)
        eventually(lambda: 2 == network.held)
        busy(behind, gate, 2)

        late = network.deliver()
        found = behind.queue.sizes()
        gate.touch()
        eventually(lambda: 0 == behind.queue.size())

    assert b"*0\r\n" == late
    assert (0, 2) == (found.ready, found.reserved)
    assert 2 == len(behind.trail(event="start"))


def test_a_reserve_that_comes_late_takes_no_job(behind, network, tmp_path):
    gate = tmp_path / "gate"
    with behind.pool("--workers", "1"):
        network.hold_the_next(RESERVE)
        eventually(lambda: 1 == network.held)
        busy(behind, gate, 1)
        behind.push("ok")

        late = network.deliver()
        found = behind.queue.sizes()
        gate.touch()
        eventually(lambda: 0 == behind.queue.size())

    assert b"-RETIRED" in late  # it may have waited, behind a BLPOP that has an answer of its own
    assert (1, 1) == (found.ready, found.reserved)
    assert [1] == [line["attempt"] for line in behind.trail(event="start", mode="ok")]


@pytest.fixture
def hurried(behind: Site) -> Iterator[Stores]:
    """A person's connection, who is not patient; it knows the scripts already."""
    stores = Stores(replace(behind.connection, block_for=0.0), shared=True, reply_timeout=PATIENCE)
    stores.queue.clear("warm"), stores.control.pause("warm"), stores.control.resume("warm")
    yield stores
    stores.close()


ASKED: dict[str, tuple[bytes, Callable[[Stores], object]]] = {
    "clear": (CLEAR, lambda stores: stores.queue.clear("default")),
    "pause": (PUT, lambda stores: stores.control.pause("default")),
    "continue": (REMOVE, lambda stores: stores.control.resume("default")),
}


@pytest.mark.parametrize(("words", "ask"), ASKED.values(), ids=ASKED)
def test_what_somebody_has_asked_is_not_done_after_it_was_reported_as_failed(hurried, network, stores, words, ask):
    network.hold_the_next(words)
    with pytest.raises(StoreDown):
        ask(hurried)
    given_up = stores.queue.now()
    eventually(lambda: stores.failed.now() > given_up + PATIENCE)  # the connection was closed at once

    assert network.deliver().startswith(b"-LATE")
