"""Where Sentinels say that the primary is: which of them is believed, and what happens to connections that are open."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from queuepool.config import sentinels as urls
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import LoginRefused, StoreDenied, StoreDown, StoreUnfit
from queuepool.stores.factory import Stores, primary_as_told
from queuepool.stores.finding import Grade
from queuepool.stores.redis import primary, sentinel
from queuepool.stores.redis.followed import Follower
from queuepool.stores.redis.sentinel import PERIOD, Said, believed, whereabouts
from queuepool.stores.redis.sentinel_check import _NEEDED, inspect_sentinels
from tests.support.eventually import eventually
from tests.support.samples import new_jobs
from tests.support.sentinels import NAME, Process


@dataclass
class Divided:
    """Two primaries, a sentinel that names the first one, and two that have seen a failover to the second one."""

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
        for epoch, one in [(1, servers[0]), (2, servers[1]), (2, servers[1])]
    ]
    found = Divided(servers, [Process(tmp_path, "redis-sentinel", lines) for lines in watching])
    for one in (*found.servers, *found.sentinels):
        one.start()
    yield found
    for one in (*found.sentinels, *found.servers):
        one.kill()


@pytest.fixture(autouse=True)
def nobody_is_taken_for_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a crowded machine anybody may need more than the usual half of a second."""
    monkeypatch.setattr(sentinel, "_TIMEOUT", 20.0)
    monkeypatch.setattr(primary, "_CONNECTS", 20.0)


@pytest.fixture
def stores(divided: Divided, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    """They look again only where a test says so: a second may go by between any two of its steps."""
    monkeypatch.setattr(sentinel, "PERIOD", 3600.0)
    settings = ConnectionSettings(url=divided.url)
    with closing(Stores(settings, shared=True, reply_timeout=20.0)) as built:
        yield built


def looks_again(url: str) -> None:
    """As if a second had passed."""
    whereabouts(url)._looked_at = -inf


def test_a_producer_looks_each_second_and_believes_the_sentinel_that_has_seen_more(divided, stores):
    stores.queue.push("default", new_jobs(b"1"))
    assert [1, 0] == divided.jobs()
    for count in (1, 2, 3):  # the one that is behind is asked in its turn, and not believed
        looks_again(divided.url)
        stores.queue.push("default", new_jobs(b"2"))
        assert [1, count] == divided.jobs()


def has_seen_the_failover(divided: Divided, stores: Stores) -> None:
    """Push a job to each server."""
    for job in (b"1", b"2"):
        looks_again(divided.url)
        stores.queue.push("default", new_jobs(job))
    assert [1, 1] == divided.jobs()


def set_up_again(divided: Divided) -> None:
    """Those that have seen the failover forget it."""
    for one in divided.sentinels[1:]:
        one.say("SENTINEL", "REMOVE", NAME)
        one.say("SENTINEL", "MONITOR", NAME, "127.0.0.1", divided.servers[0].port, 1)


def test_sentinels_that_were_set_up_again_are_believed_once_they_are_most(divided, stores):
    has_seen_the_failover(divided, stores)
    set_up_again(divided)
    looks_again(divided.url)
    stores.queue.push("default", new_jobs(b"3"))

    assert [2, 1] == divided.jobs()


@pytest.mark.thorough("ten seconds")
def test_one_that_was_silent_is_asked_again_and_one_that_is_behind_is_never_believed(divided, stores):
    has_seen_the_failover(divided, stores)
    for one in divided.sentinels[1:]:
        one.kill()
    for count in (2, 3, 4):
        looks_again(divided.url)
        stores.queue.push("default", new_jobs(b"3"))
        assert [1, count] == divided.jobs()
    assert [False, True, True] == [one.is_silent for one in whereabouts(divided.url).sentinels]
    for one in divided.sentinels[1:]:
        one.start()
    eventually(lambda: not any(one.is_silent for one in whereabouts(divided.url).sentinels))
    asked = time.monotonic()
    for _ in divided.sentinels:
        looks_again(divided.url)
        stores.queue.push("default", new_jobs(b"4"))

    assert [1, 7] == divided.jobs()
    assert all(one.asked_at > asked for one in whereabouts(divided.url).sentinels)


def test_sentinels_that_hang_delay_a_push_once_each(divided, stores, monkeypatch):
    monkeypatch.setattr(sentinel, "_TIMEOUT", 0.5)
    stores.queue.push("default", new_jobs(b"1"))
    for one in divided.sentinels:
        one.stop()
    for _ in divided.sentinels:
        looks_again(divided.url)
        stores.queue.push("default", new_jobs(b"2"))
    asked = [one.asked_at for one in whereabouts(divided.url).sentinels]
    looks_again(divided.url)
    stores.queue.push("default", new_jobs(b"3"))

    assert all(one.is_silent for one in whereabouts(divided.url).sentinels)
    assert asked == [one.asked_at for one in whereabouts(divided.url).sentinels]
    assert [0, 5] == sorted(divided.jobs())  # on a crowded machine the first push may have passed over a sentinel


def said(epoch: int, host: str) -> Said:
    return Said(epoch, host, 6379, {})


@pytest.mark.parametrize(
    ("known", "all_said", "expected"),
    [
        (None, [said(1, "a"), said(2, "b")], "b"),
        (said(2, "b"), [said(3, "a")], "a"),
        (said(2, "b"), [said(1, "a"), said(2, "b")], "b"),
        (said(2, "b"), [said(1, "a")], None),
        (said(2, "b"), [said(1, "a"), said(0, "a")], None),
        (said(2, "b"), [said(1, "a"), said(1, "a")], "a"),
        (said(2, "b"), [said(2, "a")], None),
        (said(2, "b"), [said(2, "a"), said(2, "a")], "a"),
        (said(2, "b"), [said(2, "a"), said(2, "b")], None),
    ],
)
def test_who_is_believed_of_three(known, all_said, expected):
    found = believed(known and known.statement, all_said, 3)

    assert expected == (found and found.host)


def test_a_new_steward_does_not_believe_one_that_is_behind_what_is_on_the_board(divided):
    told = SimpleNamespace(store_epoch=0, store_config_epoch=0, store_at="")
    places = [f"127.0.0.1 {one.port}" for one in divided.servers]
    behind, ahead, also_ahead = whereabouts(divided.url).own_sentinels()
    Follower(whereabouts(divided.url), told, lambda: None)._take(ahead, ahead.look())
    moved: list[str] = []
    follower = Follower(whereabouts(divided.url), told, lambda: moved.append(told.store_at))
    follower._take(behind, behind.look())
    assert (1, 2, places[1], []) == (told.store_epoch, told.store_config_epoch, told.store_at, moved)

    set_up_again(divided)
    for one in (ahead, also_ahead):
        follower._take(one, one.look())
    assert (2, places[0], [places[0]]) == (told.store_epoch, told.store_at, moved)


def test_a_forked_process_asks_the_sentinels_itself(divided, stores):
    whereabouts(divided.url).read(SimpleNamespace(store_epoch=1, store_at="nowhere"))
    child = os.fork()
    if not child:
        with suppress(BaseException):
            stores.queue.push("default", new_jobs(b"1"))
        os._exit(0)
    os.waitpid(child, 0)

    assert [1, 0] == divided.jobs()
    assert whereabouts(divided.url).told


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
        assert not wait.was_cut_off  # a job that has come there meanwhile was reserved


@pytest.mark.by_turns("place")
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
        (
            f"redis+sentinel://127.0.0.1:1/{NAME}",
            StoreDown,
            "no sentinel says where the primary is: 127.0.0.1:1: .*refused",
        ),
        (f"redis+sentinel://127.0.0.1:1,127.0.0.1:{divided.sentinels[0].port}/other", StoreDown, "knows no primary"),
        (divided.url + "?sentinel_password=wrong", LoginRefused, "sentinel 127.0.0.1:"),
    ]:
        with closing(Stores(ConnectionSettings(url=url))) as stores, pytest.raises(error, match=words):
            stores.queue.sizes("default")


def as_user(divided: Divided, *rights: str) -> str:
    """The URL for a user who has these rights at the sentinels."""
    for one in divided.sentinels:
        one.say("ACL", "SETUSER", "narrow", "reset", "on", ">pw", *rights)
    return divided.url + "?sentinel_user=narrow&sentinel_password=pw"


def checked(url: str) -> list[tuple[Grade, str]]:
    with closing(Stores(ConnectionSettings(url=url))) as stores:
        return [(found.grade, found.words) for found in inspect_sentinels(stores, "")]


def test_a_user_at_the_sentinels_needs_no_more_rights_than_check_and_the_manual_say(divided):
    said = checked(as_user(divided, *_NEEDED.split()))

    assert _NEEDED in Path("docs/stores.md").read_text().replace("\n", " ").replace("   ", " ")
    assert not [words for _, words in said if "NOPERM" in words]


def test_rights_that_are_missing_at_the_sentinels_are_named(divided):
    url = as_user(divided, "+sentinel|master")
    with (
        closing(Stores(ConnectionSettings(url=url))) as stores,
        pytest.raises(StoreDenied, match=r"sentinel\|get-master"),
    ):
        stores.queue.sizes("default")
    assert 3 == sum(grade is Grade.FAIL and "refuses to say where it is" in words for grade, words in checked(url))

    said = checked(as_user(divided, "+sentinel|master", "+sentinel|get-master-addr-by-name"))
    assert 3 == sum(grade is Grade.WARN and "may not subscribe to its news" in words for grade, words in said)
    assert any("whether a failover is possible is unknown" in words for _, words in said)
    assert not any("no failover is possible" in words for _, words in said)


def test_without_its_news_a_sentinel_is_asked_each_second(divided):
    url = as_user(divided, "+sentinel|master", "+sentinel|get-master-addr-by-name")
    news = whereabouts(url).own_sentinels()[0].news()

    assert not next(news)
    began = time.monotonic()
    refusals = {next(news), next(news)}
    assert 1 == len(refusals)
    assert "may not subscribe" in refusals.pop()
    assert time.monotonic() - began > PERIOD * 0.9
    news.close()


def test_two_sentinels_of_one_epoch_that_name_two_primaries_fail_the_check(divided):
    assert [Grade.WARN] == [grade for grade, words in checked(divided.url) if "disagree" in words]
    divided.sentinels[1].say("SENTINEL", "REMOVE", NAME)
    divided.sentinels[1].say("SENTINEL", "MONITOR", NAME, "127.0.0.1", divided.servers[1].port, 1)
    divided.sentinels[0].say("SENTINEL", "REMOVE", NAME)
    divided.sentinels[0].say("SENTINEL", "MONITOR", NAME, "127.0.0.1", divided.servers[0].port, 1)
    url = f"redis+sentinel://{','.join(f'127.0.0.1:{one.port}' for one in divided.sentinels[:2])}/{NAME}"

    assert [Grade.FAIL] == [grade for grade, words in checked(url) if "none has seen more failovers" in words]


def test_a_url_says_where_the_sentinels_are_and_how_they_are_reached():
    found = urls.parsed("rediss+sentinel://u:p@h1:1,[::1],h2/m/3?sentinel_password=a%40+b&ssl_ca_certs=/x")

    assert (("h1", 1), ("::1", 26379), ("h2", 26379)) == found.sentinels
    assert ("m", 3, None, "a@+b", "rediss", "ssl_ca_certs=/x") == found[1:]
    assert "rediss://u:p@h1:1/3?ssl_ca_certs=/x" == urls.of_servers("rediss+sentinel://u:p@h1:1,h2/m/3?ssl_ca_certs=/x")
