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
from queuepool.steward.watch_room import WatchRoom
from queuepool.stores.factory import Stores
from queuepool.unix.signals import WorkerSignals
from tests.support.drivers import connection_of, opened

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
        watch = WatchRoom(header, stores.room)
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
            WatchRoom(Board.private().header, stores.room).run(0.0)

    assert not isinstance(caught.value, StoreFull)


def test_a_steward_shows_that_its_database_is_full_until_it_can_write_again(request):
    header = Board.private().header
    with opened(connection_of("sqlite", request)) as stores:
        writes = Writes(stores, header)
        chores = [writes, WatchRoom(header, stores.room)]
        signals = WorkerSignals()
        outage = Outage(signals, Listeners(), announces=False, retries=False)
        slot = Board.private().slots[0]
        steward = Steward("p", slot, header, [], chores, lambda seconds: False, signals, outage, Blame(header))
        steward.run(until=lambda: len(writes.seen) > 3)

    assert [False, True, True, False] == [bool(since) for since in writes.seen[:4]]
    assert 0.0 == header.store_full


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
