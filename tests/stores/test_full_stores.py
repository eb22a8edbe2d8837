"""A store without room for anything new says so in words of its own, and the board has since when."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from queuepool.board.blame import Blame
from queuepool.board.board import Board, Header
from queuepool.errors import StoreDown, StoreFull
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Outage
from queuepool.steward.loop import Steward
from queuepool.steward.watch_store import WatchRoom
from queuepool.stores.commands import CommandOutcome, RemoteCommand
from queuepool.stores.factory import Stores
from queuepool.unix.signals import WorkerSignals
from tests.support.drivers import connection_of, opened
from tests.support.samples import new_jobs

#: makes a database refuse a statement as it does when its disk is full
FULL: dict[str, Callable[[Any], object]] = {
    "sqlite": lambda connection: [
        connection.exec_driver_sql("pragma max_page_count = 1"),
        connection.exec_driver_sql("create table filler as select zeroblob(10000000) as bytes"),
    ],
    "postgres": lambda connection: connection.exec_driver_sql("do $$ begin raise using errcode = '53100'; end $$"),
    "mariadb": lambda connection: connection.exec_driver_sql(
        "signal sqlstate 'HY000' set mysql_errno = 1021, message_text = 'Disk full'"
    ),
}


@pytest.mark.parametrize("driver", FULL)
def test_a_database_whose_disk_is_full_is_full(request, driver):
    with opened(connection_of(driver, request)) as stores, pytest.raises(StoreFull):
        stores.client.ask(FULL[driver])


def test_a_full_redis_is_noticed_and_is_full_until_it_has_room(own_server, connection, caplog):
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        header = Board.private().header
        watch = WatchRoom(header, stores.queue)
        watch.run(0.0)
        assert 0.0 == header.store_full

        own_server.say("CONFIG", "SET", "maxmemory", 1)
        watch.run(10.0)
        since = header.store_full
        watch.run(20.0)
        assert abs(since - time.time()) < 60
        assert since == header.store_full

        own_server.say("CONFIG", "SET", "maxmemory", 0)
        watch.run(30.0)
        assert 0.0 == header.store_full
        assert [] == own_server.say("KEYS", "*")


def test_a_server_that_is_away_is_not_full(own_server, connection):
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        own_server.kill()
        with pytest.raises(StoreDown) as caught:
            WatchRoom(Board.private().header, stores.queue).run(0.0)

    assert not isinstance(caught.value, StoreFull)


def test_a_steward_shows_that_its_database_is_full_until_it_can_write_again(request):
    header = Board.private().header
    with opened(connection_of("sqlite", request)) as stores:
        writes = Writes(stores, header)
        chores = [writes, WatchRoom(header, stores.queue)]
        steward_of(header, *chores).run(until=lambda: len(writes.seen) > 3)

    assert [False, True, True, False] == [bool(since) for since in writes.seen[:4]]
    assert 0.0 == header.store_full


class Pushes:
    """A chore whose push the store refuses."""

    def __init__(self, stores: Stores, header: Header) -> None:
        self._stores = stores
        self._header = header
        #: what the board said at each of its runs: since when the store is away, and full
        self.seen: list[tuple[float, float]] = []

    def run(self, now: float) -> float:
        self.seen.append((self._header.store_lost, self._header.store_full))
        self._stores.queue.push("default", new_jobs(b"{}"))
        return 0.0


def test_an_operator_reaches_pools_through_a_full_redis(own_server, connection):
    own_server.say("CONFIG", "SET", "maxmemory", 1)
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        command = RemoteCommand("aa", "pause", {}, "jo@web1", stores.queue.now(), "bb")
        stores.commands.send([command])
        stores.commands.answer(command, CommandOutcome.DONE, "paused")
        stores.journal.write("jo@web1", "pause", "pool default")

        assert stores.control.read(()).news
        assert [command] == list(stores.commands.take("aa"))
        assert ["paused"] == [answer.words for answer in stores.commands.answers("bb")]
        assert ["pause"] == [line.verb for line in stores.journal.last(1)]
        assert stores.control.restart()


def steward_of(header: Header, *chores: Any) -> Steward:
    signals = WorkerSignals()
    outage = Outage(signals, Listeners(), announces=False, retries=False)
    slot = Board.private().slots[0]
    return Steward("p", slot, header, [], chores, lambda seconds: None, signals, outage, Blame(header))


def test_a_steward_does_not_take_a_full_redis_for_away_and_its_other_chores_go_on(own_server, connection):
    own_server.say("CONFIG", "SET", "maxmemory", 1)
    header = Board.private().header
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        pushes = Pushes(stores, header)
        steward_of(header, pushes, WatchRoom(header, stores.queue)).run(until=lambda: len(pushes.seen) > 1)

    assert {0.0} == {lost for lost, _ in pushes.seen}
    assert [False, True] == [bool(full) for _, full in pushes.seen]


@pytest.mark.parametrize("refusal", ["type", "acl"])
def test_a_store_is_back_after_an_outage_also_if_it_refuses_a_chore(own_server, connection, refusal):
    key = f"{connection.prefix}queues:default"
    header = Board.private().header
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        pushes = Pushes(stores, header)
        steward = steward_of(header, pushes)
        own_server.kill()
        steward.run(until=lambda: bool(header.store_lost))
        own_server.start()
        refuse = {"type": ("SET", key, "no list"), "acl": ("ACL", "SETUSER", "default", "-rpush")}
        own_server.say(*refuse[refusal])
        before = len(pushes.seen)
        steward.run(until=lambda: not header.store_lost or len(pushes.seen) > before + 5)

    assert 0.0 == header.store_lost


class Writes:
    """A chore whose first two writes find the disk full. ``seen``: what the board said at each of its runs."""

    def __init__(self, stores: Stores, header: Header) -> None:
        self._stores = stores
        self._header = header
        self.seen: list[float] = []

    def run(self, now: float) -> float:
        self.seen.append(self._header.store_full)
        if len(self.seen) < 3:
            self._stores.client.ask(FULL["sqlite"])
        return 0.0
