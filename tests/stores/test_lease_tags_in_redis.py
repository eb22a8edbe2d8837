"""Redis keeps the tags of living workers and refuses retired ones; reservations without a tag are Laravel's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import TagRetired
from queuepool.stores.factory import Stores
from queuepool.stores.redis.queue import TAGS
from tests.support.eventually import eventually
from tests.support.prefetch_process import said_by_a_worker
from tests.support.redis_server import free_port, start_redis
from tests.support.samples import new_jobs, payload

NOW = 1_800_000_000.0


@pytest.fixture
def store(stores):
    stores.queue.clock = repr(NOW)
    return stores.queue


def later(store, seconds):
    store.clock = repr(NOW + seconds)


def drawn(store, lot: int) -> int:
    """The tag of a worker on whose lot this number stands."""
    return int(store.client.script("join", [store.keys.tags], [store.clock, 90, TAGS, lot, 0]))


def tags_of(socket: str, workers: int) -> list[int]:
    """The tags of workers that join there."""
    stores = Stores(ConnectionSettings(url=f"unix://{socket}"))
    try:
        return [stores.queue.join() for _ in range(workers)]
    finally:
        stores.close()


@pytest.fixture
def promoted() -> Iterator[tuple[str, str]]:
    """The sockets of a server and of its replica, which has just been promoted: each takes itself for the primary."""
    servers = []
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as folder:
        places, port = [f"{folder}/{name}" for name in ("first", "second")], free_port()
        try:
            for place, options in zip(places, ([], ["--replicaof", f"127.0.0.1 {port}"]), strict=True):
                Path(place).mkdir()
                own = port if not servers else free_port()
                servers.append(start_redis(place, "--port", str(own), "--repl-diskless-sync-delay", "0", *options))
                tags_of(f"{place}/redis.sock", 0 if options else 1)
            with redis.Redis(unix_socket_path=f"{places[1]}/redis.sock") as replica:
                eventually(lambda: "up" == replica.info("replication")["master_link_status"])
                replica.replicaof("NO", "ONE")
            yield f"{places[0]}/redis.sock", f"{places[1]}/redis.sock"
        finally:
            for server in servers:
                server.kill()
                server.wait()


def test_a_tag_that_somebody_has_is_passed_over_when_the_lot_falls_on_it(store):
    first = store.join()

    assert first % (TAGS - 1) + 1 == drawn(store, first)


def test_a_promoted_replica_that_does_not_know_the_last_workers_gives_others_tags_than_theirs(promoted):
    tags = [tags_of(socket, 2) for socket in promoted]

    assert tags[0] != tags[1]


# What a stop, a pause or a message does to a wait: its connection is closed, and the next command opens another.
_INTERRUPTED = """
import os, signal, threading
import redis
from tests.support.eventually import eventually

class Interrupted(BaseException): pass

def interrupt(*_): raise Interrupted

def interrupt_the_wait():
    with redis.Redis(unix_socket_path=first) as server:
        eventually(lambda: server.info("clients")["blocked_clients"])
    signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

def led_to(server):
    Path(address + ".new").symlink_to(server)
    os.replace(address + ".new", address)
    signal.signal(signal.SIGALRM, interrupt)
    threading.Thread(target=interrupt_the_wait).start()
    try:
        store.wait(["nobody's"], 60.0)
    except Interrupted:
        for _ in range(6):
            is_done(prefetch.next_job(["default"]))

tag = membership.tag
led_to(first)
print(membership.tag == tag)
led_to(second)
print(store.reclaim(["default"], tag, 600.0, known=()), tag != membership.tag == slot.tag)
"""


@pytest.mark.parametrize("ahead", [1, 4])
def test_a_worker_that_is_led_to_another_server_takes_another_tag_before_it_reserves_there(promoted, tmp_path, ahead):
    address = str(tmp_path / "address")
    Path(address).symlink_to(promoted[0])
    for socket in promoted:
        stores = Stores(ConnectionSettings(url=f"unix://{socket}"))
        stores.queue.push("default", new_jobs(*(payload(f"{socket} {number}") for number in range(30))))
        stores.close()
    places = "first, second, address = {!r}, {!r}, {!r}\n".format(*promoted, address)

    said = said_by_a_worker(places + _INTERRUPTED, ConnectionSettings(url=f"unix://{address}"), tmp_path, ahead)

    assert "True\n[] True\n" == said


def test_a_tag_is_free_again_when_its_worker_has_not_been_heard_of_for_long(store):
    tag = store.join()
    later(store, 90 + 600 + 1)

    assert tag == drawn(store, tag)


def test_a_worker_that_reserves_keeps_its_tag(store):
    tag = store.join()
    later(store, 600)
    store.reserve(["default"], tag, 1)
    later(store, 600 + 90 + 300)

    assert tag != drawn(store, tag)


def test_a_worker_at_a_long_job_keeps_its_tag_with_its_lease(store):
    store.push("default", new_jobs(payload("a")))
    tag = store.join()
    leases = store.reserve(["default"], tag, 1).leases
    for minute in range(1, 30):
        later(store, 60 * minute)
        assert [True] == store.renew(leases)

    assert tag != drawn(store, tag)


def test_nothing_is_reserved_under_a_tag_that_was_given_up(store):
    store.push("default", new_jobs(payload("a")))
    old = store.join()
    new = store.join(old)

    with pytest.raises(TagRetired):
        store.reserve(["default"], old, 1)
    assert 1 == len(store.reserve(["default"], new, 1).leases)


def test_a_request_that_was_refused_does_not_open_the_door_to_the_next_late_one(store):
    store.push("default", new_jobs(payload("a")))
    old = store.join()
    store.retire(old)

    for _ in range(2):
        with pytest.raises(TagRetired):
            store.reserve(["default"], old, 1)
    assert 1 == store.sizes("default").ready


def test_a_retired_tag_is_not_given_to_anybody_for_an_hour(store):
    old = store.join()
    store.retire(old)
    later(store, 3500)
    assert old != drawn(store, old)

    later(store, 3700)
    assert old == drawn(store, old)


def test_where_every_tag_is_taken_the_one_that_was_used_longest_ago_is_given(store, server):
    server.zadd(store.keys.tags, {tag: NOW + 100 + tag % 77_777 for tag in range(1, TAGS)})

    assert 77_777 == store.join()


@pytest.mark.fault("F72")
def test_a_reclaim_under_any_tag_leaves_alone_what_laravel_runs(store, server):
    server.zadd(store.keys.reserved("default"), {payload("a", attempts=1): NOW + 90})

    assert not any(store.reclaim(["default"], tag, 600.0, known=()) for tag in (0, 1, TAGS - 1))


def test_after_the_last_tag_comes_the_first_for_zero_is_laravels(store):
    assert [TAGS - 1, 1, 2] == [drawn(store, TAGS - 1) for _ in range(3)]
