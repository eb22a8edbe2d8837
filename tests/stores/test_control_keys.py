"""The control keys: restart, pause, maintenance, and what pools publish."""

from __future__ import annotations

import dataclasses
import json

import pytest
import redis

from queuepool.stores.contract import NOTICE_KEPT, Control
from queuepool.stores.factory import Stores
from tests.support.redis_server import PREFIX

CACHE = f"{PREFIX}laravel_cache:"
RESTART = f"{CACHE}illuminate:queue:restart"
QUEUES = ("high", "default")
TRUE, FALSE = b"b:1;", b"b:0;"


@pytest.fixture
def connection(connection):
    """The restart key is where Laravel's cache has it."""
    return dataclasses.replace(connection, restart_key=RESTART)


@pytest.fixture
def control(stores):
    return stores.control


def test_where_nobody_said_anything_nothing_is_controlled(control):
    assert Control(restart=None, paused=frozenset(), down=False) == control.read(QUEUES)


# Restart


def test_a_restart_that_laravel_broadcast_is_read_as_it_stands(server, control):
    server.set(RESTART, "1700000000")

    assert "1700000000" == control.read(QUEUES).restart


@pytest.mark.fault("F34", "F41")
def test_a_restart_is_the_servers_second_as_laravel_writes_it(server, control):
    second = server.time()[0]

    stamp = control.restart()

    assert second <= stamp <= server.time()[0]
    assert str(stamp).encode() == server.get(RESTART)
    assert str(stamp) == control.read(QUEUES).restart


@pytest.mark.fault("F34")
def test_every_restart_is_a_new_one_also_within_a_second(control):
    stamps = [control.restart() for _ in range(5)]

    assert sorted(set(stamps)) == stamps


@pytest.mark.fault("F34")
@pytest.mark.parametrize("value", [b"", b"garbage", b"i:1700000000;", b"9999999999", b"\xff"])
def test_a_restart_differs_from_whatever_was_there(server, control, value):
    server.set(RESTART, value)
    before = control.read(QUEUES).restart

    control.restart()

    assert before != control.read(QUEUES).restart


def test_a_restart_lies_where_control_url_says(server, connection):
    stores = Stores(dataclasses.replace(connection, control_url=f"{connection.url}?db=1"))
    stores.control.restart()

    assert None is server.get(RESTART)
    assert None is not stores.control.read(QUEUES).restart
    stores.close()


def test_maintenance_and_pauses_are_read_from_both_databases(server, connection):
    stores = Stores(dataclasses.replace(connection, control_url=f"{connection.url}?db=1"))
    stores.control.down()
    stores.control.pause("high")

    assert Control(restart=None, paused=frozenset({"high"}), down=True) == stores.control.read(QUEUES)
    assert 1 == server.dbsize()
    stores.close()


def test_laravels_maintenance_mode_is_read_where_maintenance_url_says(connection):
    elsewhere = dataclasses.replace(connection, maintenance_url=f"{connection.url}?db=1")
    named = dataclasses.replace(elsewhere, maintenance_key="shop_down")
    beside, apart = Stores(elsewhere), Stores(named)
    before = (beside.control.read(QUEUES).down, apart.control.read(QUEUES).down)

    other = redis.Redis.from_url(f"{connection.url}?db=1")
    other.set("shop_down", "a:0:{}")
    found = (beside.control.read(QUEUES).down, apart.control.read(QUEUES).down)
    other.set(RESTART.replace("queue:restart", "foundation:down"), "a:0:{}")

    assert ((False, False), (False, True), True) == (before, found, beside.control.read(QUEUES).down)
    beside.close(), apart.close(), other.close()


# Pause


def test_a_paused_queue_is_paused_until_it_is_resumed(control):
    control.pause("high")

    assert frozenset({"high"}) == control.read(QUEUES).paused
    assert control.resume("high")
    assert frozenset() == control.read(QUEUES).paused
    assert not control.resume("high")


def test_a_pause_is_written_as_laravel_writes_it(server, control):
    control.pause("high")

    assert TRUE == server.get(f"{CACHE}illuminate:queue:paused:default:high")


def test_a_pause_says_since_when_and_by_whom(server, control):
    control.pause("high", 1_764_000_000.5, 'jo"e ü@web1')
    found = control.read(QUEUES)

    assert (frozenset({"high"}), {"high": (1_764_000_000.0, "jo?e ?@web1")}) == (found.paused, found.pauses)
    assert b's:32:"queuepool 1764000000 jo?e ?@web1";' == server.get(f"{CACHE}illuminate:queue:paused:default:high")


@pytest.mark.parametrize("value", [TRUE, b's:3:"abc";', b's:24:"queuepool 1764000000000 x";', b"\xff"])
def test_of_a_pause_that_says_nothing_only_the_pause_is_known(server, control, value):
    server.set(f"{CACHE}illuminate:queue:paused:default:high", value)

    assert (frozenset({"high"}), {}) == (control.read(QUEUES).paused, control.read(QUEUES).pauses)


def test_a_queue_that_laravel_paused_is_paused(server, control):
    server.set(f"{CACHE}illuminate:queue:paused:default:high", TRUE)

    assert frozenset({"high"}) == control.read(QUEUES).paused


def test_a_queue_of_another_connection_is_not_paused(server, control):
    server.set(f"{CACHE}illuminate:queue:paused:other:high", TRUE)

    assert frozenset() == control.read(QUEUES).paused


def test_where_laravel_paused_all_queues_all_are_paused(server, control):
    server.set(f"{CACHE}illuminate:queues:paused", TRUE)

    assert frozenset(QUEUES) == control.read(QUEUES).paused


@pytest.mark.parametrize("value", [FALSE, b"N;", b"0", b""])
def test_a_pause_that_php_takes_for_false_is_none(server, control, value):
    server.set(f"{CACHE}illuminate:queues:paused", value)

    assert frozenset() == control.read(QUEUES).paused


# Maintenance


def test_maintenance_begins_and_ends(control):
    control.down()

    assert control.read(QUEUES).down
    assert control.up()
    assert not control.read(QUEUES).down
    assert not control.up()


def test_laravels_own_maintenance_counts_too(server, control):
    server.set(f"{CACHE}illuminate:foundation:down", b"a:0:{}")

    assert control.read(QUEUES).down


# Notices


def test_what_a_pool_publishes_every_host_can_see(server, control):
    before = server.time()[0]
    control.publish("b:default:2", {"host": "b", "pool": "default", "busy": 1})
    control.publish("a:default:1", {"host": "a", "pool": "default", "busy": 2})
    after = server.time()[0]

    assert [("a", 2), ("b", 1)] == [(pool["host"], pool["busy"]) for pool in control.pools()]
    assert before <= control.pools()[0]["at"] <= after + 1


def test_a_pool_has_one_notice(control):
    control.publish("a:default:1", {"host": "a", "pool": "default", "busy": 1})
    control.publish("a:default:1", {"host": "a", "pool": "default", "busy": 2})

    assert [2] == [pool["busy"] for pool in control.pools()]


def test_a_pool_that_withdrew_is_not_listed(control):
    control.publish("a:default:1", {"host": "a", "pool": "default"})
    control.withdraw("a:default:1")

    assert [] == control.pools()


def test_the_notice_of_a_pool_that_fell_silent_is_kept_for_an_hour(server, control):
    silent = {"host": "a", "pool": "default", "at": server.time()[0] - 60}
    server.hset(f"{PREFIX}queuepool:pools", "a:default:1", json.dumps(silent))

    assert [] == control.pools()
    assert [silent] == control.pools(NOTICE_KEPT)


def test_a_pool_that_fell_silent_long_ago_is_cleared_away(server, control):
    key = f"{PREFIX}queuepool:pools"
    silent = {"host": "a", "pool": "default", "at": server.time()[0] - NOTICE_KEPT - 60}
    server.hset(key, "a:default:1", json.dumps(silent))

    assert [] == control.pools()
    assert 0 == server.hlen(key)


# Schedules

SCHEDULES = ("nightly", "hourly")


def test_no_schedule_is_paused_by_itself_and_none_is_read_without_being_asked_for(control):
    control.pause_schedule()

    assert frozenset() == control.read(QUEUES).schedules
    assert control.resume_schedule()
    assert frozenset() == control.read(QUEUES, SCHEDULES).schedules


@pytest.mark.parametrize("value", [TRUE, b"1", b"i:1;"])
def test_laravels_pause_of_its_schedule_holds_for_all_of_ours(server, control, value):
    server.set(f"{CACHE}illuminate:schedule:paused", value)

    assert set(SCHEDULES) == control.read(QUEUES, SCHEDULES).schedules


def test_one_schedule_can_be_paused_or_all(server, control):
    control.pause_schedule("nightly")
    assert {"nightly"} == control.read(QUEUES, SCHEDULES).schedules

    control.pause_schedule()
    assert set(SCHEDULES) == control.read(QUEUES, SCHEDULES).schedules
    assert control.resume_schedule("nightly")
    assert set(SCHEDULES) == control.read(QUEUES, SCHEDULES).schedules
    assert control.resume_schedule()
    assert not control.resume_schedule()
    assert not control.read(QUEUES, SCHEDULES).schedules


def test_a_pause_of_schedules_leaves_queues_and_maintenance_as_they_are(control):
    control.pause("high")
    control.pause_schedule()

    assert Control(paused=frozenset({"high"}), schedules=frozenset(SCHEDULES)) == control.read(QUEUES, SCHEDULES)
