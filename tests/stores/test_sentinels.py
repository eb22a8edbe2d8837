"""Where Sentinels say that the primary is: which of them is believed, and what happens to connections that are open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from queuepool.config import sentinels as urls
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import LoginRefused, StoreDown, StoreUnfit
from queuepool.stores.factory import Stores, primary_as_told
from queuepool.stores.redis.sentinel import PERIOD, whereabouts
from tests.support.eventually import eventually
from tests.support.samples import new_jobs
from tests.support.sentinels import NAME, Process


@dataclass
class Divided:
    """Two primaries, and two sentinels of which each knows another one; the second has seen a failover more."""

    servers: list[Process]
    sentinels: list[Process]

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{one.port}' for one in self.sentinels)}/{NAME}"

    def jobs(self) -> list[int]:
        """How many jobs each of the servers holds."""
        return [int(one.say("LLEN", "queues:default")) for one in self.servers]


@pytest.fixture
def divided(tmp_path: Path) -> Iterator[Divided]:
    servers = [Process(tmp_path, "redis-server", ['save ""']) for _ in range(2)]
    watching = [
        [f"sentinel monitor {NAME} 127.0.0.1 {one.port} 1", f"sentinel config-epoch {NAME} {epoch}"]
        for epoch, one in enumerate(servers, start=1)
    ]
    found = Divided(servers, [Process(tmp_path, "redis-sentinel", lines) for lines in watching])
    for one in (*found.servers, *found.sentinels):
        one.start()
    yield found
    for one in (*found.sentinels, *found.servers):
        one.kill()


@pytest.fixture
def stores(divided: Divided) -> Iterator[Stores]:
    with closing(Stores(ConnectionSettings(url=divided.url), shared=True)) as built:
        yield built


def looks_again(url: str) -> None:
    """As if a second had passed."""
    eventually(lambda: time.monotonic() - whereabouts(url)._looked_at >= PERIOD)


def test_a_producer_looks_each_second_and_believes_the_sentinel_that_has_seen_more(divided, stores):
    stores.queue.push("default", new_jobs(b"1"))
    assert [1, 0] == divided.jobs()
    for count in (1, 2, 3):  # the one that is behind is asked in its turn, and not believed
        looks_again(divided.url)
        stores.queue.push("default", new_jobs(b"2"))
        assert [1, count] == divided.jobs()


def test_sentinels_that_were_all_set_up_again_are_believed(divided, stores):
    stores.queue.push("default", new_jobs(b"1"))
    looks_again(divided.url)
    stores.queue.push("default", new_jobs(b"2"))
    divided.sentinels[1].kill()  # the only one that has seen the last failover
    looks_again(divided.url)
    stores.queue.push("default", new_jobs(b"3"))

    assert [2, 1] == divided.jobs()


def test_what_the_board_says_moves_an_open_connection_and_ends_a_wait(divided):
    told = SimpleNamespace(store_epoch=1, store_at=f"127.0.0.1 {divided.servers[0].port}")
    end_stale_calls = primary_as_told(ConnectionSettings(url=divided.url), told)
    with closing(Stores(ConnectionSettings(url=divided.url))) as stores:
        stores.queue.push("default", new_jobs(b"1"))
        told.store_at = f"127.0.0.1 {divided.servers[1].port}"
        end_stale_calls()
        stores.queue.push("default", new_jobs(b"2"))  # the epoch is the same: nothing has moved
        assert [2, 0] == divided.jobs()

        told.store_epoch = 2
        stores.queue.push("default", new_jobs(b"3"))
        assert [2, 1] == divided.jobs()

        wait = stores.queue.reserve_waiting(["other"], 30.0, stores.queue.join(), 0)
        told.store_at, told.store_epoch = f"127.0.0.1 {divided.servers[0].port}", 3
        end_stale_calls()  # as a signal's handler does, in the middle of the wait
        wait.wait()
        with pytest.raises(StoreDown, match="the primary has moved"):
            wait.read()


@pytest.mark.parametrize("place", ["", "nonsense", "h 99999", "127.0.0.1 1"])
def test_nonsense_on_the_board_is_passed_over_for_what_a_sentinel_says(divided, place):
    settings = ConnectionSettings(url=divided.url)
    primary_as_told(settings, SimpleNamespace(store_epoch=1, store_at=place))
    with closing(Stores(settings)) as stores:
        eventually(lambda: has_pushed(stores))

    assert 1 == sum(divided.jobs())


def has_pushed(stores: Stores) -> bool:
    try:
        return stores.queue.push("default", new_jobs(b"1"))
    except StoreDown:
        return False


def test_a_server_that_is_no_primary_is_refused_and_one_that_becomes_a_replica_counts_as_lost(divided, stores):
    stores.queue.push("default", new_jobs(b"1"))
    divided.servers[0].say("REPLICAOF", "127.0.0.1", divided.servers[1].port)
    with pytest.raises(StoreDown, match="is not the primary any more"):
        stores.queue.push("default", new_jobs(b"2"))
    stores.queue.push("default", new_jobs(b"3"))  # the next sentinel knows where it is

    assert 1 == divided.servers[1].say("LLEN", "queues:default")


def test_who_does_not_answer_or_does_not_know_the_name_is_told(divided):
    for url, error, words in [
        (divided.url.replace(NAME, "other"), StoreUnfit, "no sentinel knows a primary named 'other'"),
        (f"redis+sentinel://127.0.0.1:1/{NAME}", StoreDown, "no sentinel answers: 127.0.0.1:1: .*refused"),
        (divided.url + "?sentinel_password=wrong", LoginRefused, "sentinel 127.0.0.1:"),
    ]:
        with closing(Stores(ConnectionSettings(url=url))) as stores, pytest.raises(error, match=words):
            stores.queue.sizes("default")


def test_a_url_says_where_the_sentinels_are_and_how_they_are_reached():
    found = urls.parsed("rediss+sentinel://u:p@h1:1,[::1],h2/m/3?sentinel_password=a%40b&ssl_ca_certs=/x")

    assert (("h1", 1), ("::1", 26379), ("h2", 26379)) == found.sentinels
    assert ("m", 3, None, "a@b", "rediss", "ssl_ca_certs=%2Fx") == found[1:]
    assert "rediss://u:p@h1:1/3?ssl_ca_certs=%2Fx" == urls.of_servers(
        "rediss+sentinel://u:p@h1:1,h2/m/3?ssl_ca_certs=/x"
    )
