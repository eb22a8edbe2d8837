"""The Redis store alone: Laravel's keys, wake-up tokens, scripts, and a server that fails."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown, StoreError
from queuepool.payload.lease import Lease, StateRecord
from queuepool.stores.factory import Stores
from queuepool.stores.records import FailedJob, PendingFailure, Quarantined
from queuepool.stores.redis.queue import TAGS
from tests.support.eventually import eventually
from tests.support.lossy_proxy import LossyProxy
from tests.support.redis_server import PREFIX
from tests.support.samples import TALLIES, attempted, ids, new_jobs, payload

READY = f"{PREFIX}queues:default"
NOTIFY = f"{READY}:notify"
RECORD = {"id": "a", "name": "app.ok", "queue": "default", "connection": "default", "attempts": 1, "exception": ""}
NOW = 1_000_000.0


@pytest.fixture
def store(stores: Stores) -> Any:
    stores.queue.clock = repr(NOW)
    return stores.queue


def reserved(store: Any, *raws: bytes) -> list[Lease]:
    store.push("default", new_jobs(*raws))
    return store.reserve(["default"], 1, len(raws)).leases


# The wire


def test_every_key_is_laravels_under_the_connections_prefix(server, store):
    store.push("default", new_jobs(payload("a")), delay=60.0)
    reserved(store, payload("b"))
    store.push("default", new_jobs(payload("c")))

    kinds = {key.decode(): server.type(key).decode() for key in server.scan_iter(f"{PREFIX}queues:*")}
    assert {READY: "list", f"{READY}:delayed": "zset", f"{READY}:reserved": "zset", NOTIFY: "list"} == kinds


def test_no_key_lies_outside_of_the_prefix(server, stores, store):
    for lease, settle in zip(
        reserved(store, *map(payload, "abc")),
        (
            lambda lease: store.release(lease, 5.0, "a", "crashes"),
            lambda lease: store.fail(lease, "b", {**RECORD, "payload": ""}),
            lambda lease: store.quarantine(lease, "odd"),
        ),
        strict=True,
    ):
        settle(lease)
    store.join()
    stores.control.publish("pool", {})
    stores.control.down()

    assert [] == [key for key in server.scan_iter() if not key.startswith(PREFIX.encode())]


def test_the_bytes_of_a_push_are_the_ready_jobs_bytes(server, store):
    store.push("default", new_jobs(b"anything\x00\xff"))

    assert [b"anything\x00\xff"] == server.lrange(READY, 0, -1)


def test_a_lease_is_the_member_and_ends_within_a_grid_step_of_retry_after(server, store):
    reserved(store, payload("a"))

    [(member, score)] = server.zrange(f"{READY}:reserved", 0, -1, withscores=True)
    assert attempted(payload("a")) == member
    assert NOW + 90 < score <= NOW + 90 + 2 / 16


@pytest.mark.by_turns("tag")
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.05, 0.0624, 0.0626, 0.999])
@pytest.mark.parametrize("tag", [0, 1, 131_071])
def test_a_lease_never_ends_before_retry_after_whoever_holds_it(server, store, fraction, tag):
    store.clock = repr(NOW + fraction)
    store.push("default", new_jobs(payload("a")))

    store.reserve(["default"], tag, 1)

    [(_, score)] = server.zrange(f"{READY}:reserved", 0, -1, withscores=True)
    assert NOW + fraction + 90 <= score <= NOW + fraction + 90 + 2 / 16


@pytest.mark.parametrize("now", [1_800_000_000.03, 4_294_967_000.97])
@pytest.mark.parametrize("tag", [1, 77_777, 131_071])
def test_a_tag_is_read_from_a_lease_to_the_bit_for_as_long_as_seconds_have_32(store, now, tag):
    store.clock = repr(now)
    jobs = [payload(str(number)) for number in range(40)]
    store.push("default", new_jobs(*jobs))

    assert [True] * len(jobs) == store.delete(store.reserve(["default"], tag, len(jobs)).leases)


@pytest.mark.parametrize("fraction", [0.01, 0.0624, 0.0626, 0.999])
def test_a_renewed_lease_never_ends_before_retry_after_either(server, store, fraction):
    leases = reserved(store, payload("a"))
    store.clock = repr(NOW + 60 + fraction)

    assert [True] == store.renew(leases)
    [(_, score)] = server.zrange(f"{READY}:reserved", 0, -1, withscores=True)
    assert NOW + 60 + fraction + 90 <= score <= NOW + 60 + fraction + 90 + 2 / 16


def test_a_release_without_a_tally_leaves_none_behind(server, store):
    store.release(reserved(store, payload("a"))[0], 0.0, "a")

    assert [] == server.keys(f"{PREFIX}queuepool:tallies:*")


def test_of_a_job_that_was_never_suspected_the_tallies_are_stored_as_ever(server, store):
    store.release(reserved(store, payload("a"))[0], 0.0, "a", "crashes")

    assert {b"crashes": b"1"} == server.hgetall(f"{PREFIX}queuepool:tallies:a")


@pytest.mark.parametrize("tally", TALLIES)
def test_tallies_are_forgotten_a_day_after_the_last(server, store, tally):
    store.release(reserved(store, payload("a"))[0], 0.0, "a", tally)

    assert 86_000 < server.ttl(f"{PREFIX}queuepool:tallies:a") <= 86_400


def test_a_connection_that_keeps_no_failed_jobs_ends_them_all_the_same(server, connection):
    stores = Stores(dataclasses.replace(connection, failed="null"))
    lease = reserved(stores.queue, payload("a"))[0]

    assert stores.queue.fail(lease, "a", {**RECORD, "payload": ""})
    assert (0, 0) == (stores.failed.count(), stores.queue.sizes("default").total)
    stores.close()


@pytest.mark.fault("F41", "F42")
def test_the_servers_clock_counts_where_no_other_is_given(server, stores):
    before = server.time()
    told = (stores.queue.now(), stores.queue.stage(["default"]).now)
    after = server.time()

    assert before[0] <= min(told) <= max(told) <= after[0] + 1


def test_the_scripts_clock_is_the_servers_to_the_microsecond(server, stores):
    before = server.time()
    told = stores.queue.stage(["default"]).now
    after = server.time()

    assert before[0] + before[1] / 1e6 - 1e-6 <= told <= after[0] + after[1] / 1e6 + 1e-6


# Tokens


def test_a_full_batch_wakes_a_hundred_and_each_of_them_wakes_more(server, store):
    store.push("default", new_jobs(*(payload(str(number)) for number in range(500))), delay=1.0)
    store.clock = repr(NOW + 1)

    store.stage(["default"])
    woken = server.llen(NOTIFY)
    store.reserve(["default"], 1, 1)

    assert (100, 200) == (woken, server.llen(NOTIFY))


@pytest.mark.fault("F60")
def test_tokens_that_others_left_behind_are_taken_away(server, store):
    server.rpush(NOTIFY, 1, 1, 1)
    store.push("default", new_jobs(payload("a"), payload("b")))

    store.reserve(["default"], 1, 1)

    assert 1 == server.llen(NOTIFY)


@pytest.mark.fault("F60")
def test_tokens_that_others_took_twice_are_put_back(server, store):
    store.push("default", new_jobs(payload("a"), payload("b"), payload("c")))
    server.delete(NOTIFY)

    store.reserve(["default"], 1, 1)

    assert 2 == server.llen(NOTIFY)


# Keys of the wrong type


WRONG: dict[str, Callable[[redis.Redis, str], object]] = {
    "a string": lambda server, key: server.set(key, "x"),
    "a hash": lambda server, key: server.hset(key, "x", "y"),
}


@pytest.mark.fault("F55")
@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("suffix", ["", ":delayed", ":reserved", ":notify"])
def test_a_key_of_the_wrong_type_is_reported_and_the_other_queues_go_on(server, store, suffix, kind):
    WRONG[kind](server, f"{PREFIX}queues:broken{suffix}")
    store.push("default", new_jobs(payload("a")))

    reservation = store.reserve(["broken", "default"], 1, 1)

    assert ["a"] == ids(reservation.leases)
    assert ["broken"] == [queue for queue, _ in reservation.problems]
    assert "WRONGTYPE" in reservation.problems[0][1]


@pytest.mark.fault("F55")
@pytest.mark.parametrize("suffix", ["", ":delayed", ":reserved", ":notify"])
def test_a_key_of_the_wrong_type_does_not_keep_other_queues_from_being_staged(server, store, suffix):
    server.set(f"{PREFIX}queues:broken{suffix}", "x")
    store.push("default", new_jobs(payload("a")), delay=1.0)
    store.clock = repr(NOW + 1)

    assert 1 == store.stage(["broken", "default"]).moved


def test_where_the_quarantine_has_the_wrong_type_the_odd_payload_stays_in_its_queue(server, store):
    server.set(f"{PREFIX}queuepool:quarantine:default", "x")
    store.push("default", new_jobs(b"not json"))

    reservation = store.reserve(["default"], 1, 1)

    assert ["default"] == [queue for queue, _ in reservation.problems]
    assert [b"not json"] == server.lrange(READY, 0, -1)


JOB = payload("a")
BREAKING: dict[str, tuple[str, Callable[[Any, Lease], object]]] = {
    "release now": ("queues:default", lambda store, lease: store.release(lease, 0.0, "a")),
    "release later": ("queues:default:delayed", lambda store, lease: store.release(lease, 5.0, "a")),
    "release and tally": ("queuepool:tallies:a", lambda store, lease: store.release(lease, 0.0, "a", "crashes")),
    "give back": ("queues:default", lambda store, lease: store.give_back([lease])),
    "fail": ("queuepool:failed", lambda store, lease: store.fail(lease, "a", {**RECORD, "payload": ""})),
    "fail at its time": (
        "queuepool:failed:times",
        lambda store, lease: store.fail(lease, "a", {**RECORD, "payload": ""}),
    ),
    "quarantine": ("queuepool:quarantine:default", lambda store, lease: store.quarantine(lease, "odd")),
}


@pytest.mark.fault("F55")
@pytest.mark.parametrize("verb", BREAKING)
def test_a_settlement_that_the_server_refuses_leaves_the_job_where_it_was(server, store, verb):
    key, settle = BREAKING[verb]
    lease = reserved(store, JOB)[0]
    server.set(PREFIX + key, "x")

    with pytest.raises(StoreError):
        settle(store, lease)
    assert [attempted(JOB)] == server.zrange(f"{READY}:reserved", 0, -1)


def test_a_key_of_the_wrong_type_does_not_keep_other_queues_from_being_reclaimed(server, store):
    store.push("other", new_jobs(payload("b")))
    store.reserve(["other"], 1, 1)
    lease = reserved(store, JOB)[0]
    server.set(READY, "x")

    assert ["b"] == ids(store.reclaim(["default", "other"], 1, 0.0, known=()))
    assert [lease.receipt] == server.zrange(f"{READY}:reserved", 0, -1)


@pytest.mark.parametrize("verb", ["stage", "reserve"])
def test_what_is_due_stays_where_it_was_when_the_ready_list_has_the_wrong_type(server, store, verb):
    reserved(store, payload("b"))
    store.push("default", new_jobs(JOB), delay=1.0)
    server.set(READY, "x")
    store.clock = repr(NOW + 100)

    store.stage(["default"]) if "stage" == verb else store.reserve(["default"], 1, 1)

    assert [JOB] == server.zrange(f"{READY}:delayed", 0, -1)
    assert [attempted(payload("b"))] == server.zrange(f"{READY}:reserved", 0, -1)


@pytest.mark.parametrize("part", ["delayed", "reserved"])
def test_what_is_ready_stays_so_where_another_key_of_its_queue_has_the_wrong_type(server, store, part):
    store.push("default", new_jobs(JOB))
    server.set(f"{READY}:{part}", "x")

    assert [] == store.reserve(["default"], 1, 1).leases
    assert [JOB] == server.lrange(READY, 0, -1)


def test_a_queue_whose_leases_have_the_wrong_type_does_not_keep_others_from_being_served(server, store):
    done = reserved(store, JOB)
    server.set(f"{READY}:reserved", "x")
    store.push("other", new_jobs(payload("b")))

    reservation = store.reserve(["default", "other"], 1, 1, done)

    assert (["b"], done) == (ids(reservation.leases), reservation.refused)


def test_a_queue_whose_leases_have_the_wrong_type_does_not_keep_others_from_being_renewed(server, store):
    broken = reserved(store, JOB)[0]
    store.push("other", new_jobs(payload("b")))
    [lease] = store.reserve(["other"], 1, 1).leases
    server.set(f"{READY}:reserved", "x")

    assert [False, True] == store.renew([broken, lease])


MOVING: dict[str, Callable[[Stores], object]] = {
    "push": lambda stores: stores.queue.push("default", new_jobs(JOB)),
    "release": lambda stores: stores.queue.release(reserved(stores.queue, JOB)[0], 0.0, "a"),
    "give back": lambda stores: stores.queue.give_back(reserved(stores.queue, JOB)),
    "reclaim": lambda stores: reserved(stores.queue, JOB) and stores.queue.reclaim(["default"], 1, 0.0, known=()),
    "put back": lambda stores: stores.records.requeue("default", set_aside(stores).id),
    "retry": lambda stores: stores.failed.retry(failed(stores)),
}


def set_aside(stores: Stores) -> Quarantined:
    stores.queue.quarantine(reserved(stores.queue, JOB)[0], "odd")
    return next(stores.records.quarantined("default"))


def failed(stores: Stores) -> FailedJob:
    stores.queue.fail(reserved(stores.queue, JOB)[0], "a", {**RECORD, "payload": JOB.decode()})
    return stores.failed.page()[0]


@pytest.mark.parametrize("verb", MOVING)
def test_whatever_makes_a_job_ready_wakes_one_worker(server, stores, store, verb):
    MOVING[verb](stores)

    assert (1, 1) == (server.llen(READY), server.llen(NOTIFY))


@pytest.mark.parametrize("verb", MOVING)
def test_a_token_that_cannot_be_written_does_not_make_a_move_look_like_a_failure(server, stores, store, verb):
    server.set(NOTIFY, "x")

    MOVING[verb](stores)

    assert 1 == server.llen(READY)


def test_a_failed_job_whose_queue_has_the_wrong_type_stays_failed(server, stores, store):
    lease = reserved(store, JOB)[0]
    store.fail(lease, "a", {**RECORD, "payload": JOB.decode()})
    server.set(READY, "x")

    with pytest.raises(StoreError):
        stores.failed.retry(stores.failed.get("a"))
    assert None is not stores.failed.get("a")


def test_what_was_set_aside_stays_so_where_its_queue_has_the_wrong_type(server, stores, store):
    store.quarantine(reserved(store, JOB)[0], "odd")
    entry = next(stores.records.quarantined("default"))
    server.set(READY, "x")

    with pytest.raises(StoreError):
        stores.records.requeue("default", entry.id)
    assert [entry] == list(stores.records.quarantined("default"))


# Scripts


def test_a_token_that_cannot_be_written_does_not_make_a_reclaim_uncounted(server, store):
    reserved(store, JOB)
    server.delete(NOTIFY)
    server.set(NOTIFY, "x")

    assert 1 == len(store.reclaim(["default"], 1, 0.0, known=()))


def test_an_entry_that_somebody_else_put_back_meanwhile_is_not_put_back_twice(server, store):
    keys = [f"{PREFIX}queuepool:quarantine:default", READY, NOTIFY]

    assert 0 == store.client.script("requeue", keys, [b"1.0 odd x", b"x"])
    assert 0 == server.llen(READY)


@pytest.mark.fault("F51")
def test_a_server_that_forgot_the_scripts_is_taught_them_again(server, store):
    lease = reserved(store, payload("a"))[0]

    server.script_flush()

    assert [True] == store.delete([lease])
    assert 0 == store.sizes("default").total


# A server that fails


@pytest.fixture
def proxy(redis_socket, tmp_path):
    with LossyProxy(redis_socket, tmp_path) as running:
        yield running


@pytest.fixture
def lossy(proxy, connection, store):
    """A connection that has been used once, on a server that knows the scripts: the next request is the verb itself."""
    store.push("warm", new_jobs(payload("a")))
    store.reserve(["warm"], 9, 1)
    stores = Stores(dataclasses.replace(connection, url=f"unix://{proxy.path}"))
    stores.queue.join()
    yield stores.queue
    stores.close()


@pytest.mark.fault("F53")
def test_a_push_whose_reply_is_lost_is_stored_once(proxy, lossy, store):
    proxy.lose_the_next_reply()

    with pytest.raises(StoreDown):
        lossy.push("default", new_jobs(payload("a")))
    assert 1 == store.sizes("default").total


@pytest.mark.fault("F53")
def test_a_reserve_whose_reply_is_lost_takes_one_job_and_can_be_reclaimed(proxy, lossy, store):
    lossy.clock = repr(NOW)
    store.push("default", new_jobs(payload("a"), payload("b")))
    proxy.lose_the_next_reply()

    with pytest.raises(StoreDown):
        lossy.reserve(["default"], 5, 1)
    taken = store.sizes("default").reserved
    lossy.reclaim(["default"], 5, 1.0, known=())

    assert (1, 0) == (taken, store.sizes("default").reserved)
    assert [payload("a"), payload("b")] == eventually(lambda: raws_of(store))


def raws_of(store: Any) -> list[bytes]:
    return store.client.command("LRANGE", READY, 0, -1)


@pytest.mark.fault("F53")
def test_after_a_lost_reply_the_connection_works_again(proxy, lossy):
    proxy.lose_the_next_reply()
    with pytest.raises(StoreDown):
        lossy.push("default", new_jobs(payload("a")))

    assert 1 == lossy.sizes("default").total


@pytest.mark.fault("F52")
def test_a_server_that_is_stopped_is_noticed_within_the_patience(server, connection):
    quick = Stores(dataclasses.replace(connection, block_for=0.0))
    quick.queue.join()
    connections = server.info("stats")["total_connections_received"]
    server.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    began = time.monotonic()
    try:
        with pytest.raises(StoreDown):
            quick.queue.push("default", new_jobs(payload("a")))
        assert 1.9 < time.monotonic() - began < 30.0
        assert connections == server.info("stats")["total_connections_received"]  # nor was there a second try
    finally:
        server.execute_command("CLIENT", "UNPAUSE")
        quick.close()


def test_building_the_stores_sends_nothing(tmp_path):
    Stores(ConnectionSettings(url=f"unix://{tmp_path}/none.sock")).close()


@pytest.mark.parametrize("shared", [True, False])
def test_a_server_that_is_not_there_is_down(tmp_path, shared):
    stores = Stores(ConnectionSettings(url=f"unix://{tmp_path}/none.sock"), shared=shared)

    with pytest.raises(StoreDown):
        stores.queue.push("default", new_jobs(payload("a")))
    with pytest.raises(StoreDown):
        stores.queue.wait(["default"], 1.0)


def test_a_server_that_comes_later_is_used_then(redis_url, redis_socket, tmp_path):
    path = tmp_path / "redis.sock"
    stores = Stores(ConnectionSettings(url=f"unix://{path}"))
    with pytest.raises(StoreDown):
        stores.queue.join()

    path.symlink_to(redis_socket)

    assert 0 <= stores.queue.join() < TAGS
    stores.close()


BAD_DAYS = {
    "NOREPLICAS": (("CONFIG", "SET", "min-replicas-to-write", 1), ("CONFIG", "SET", "min-replicas-to-write", 0)),
    "OOM": (("CONFIG", "SET", "maxmemory", 1), ("CONFIG", "SET", "maxmemory", 0)),
    "READONLY": (("REPLICAOF", "127.0.0.1", 1), ("REPLICAOF", "NO", "ONE")),
}


@pytest.mark.fault("F48", "F49", "F50")
@pytest.mark.parametrize("code", ["NOREPLICAS", "OOM", "READONLY"])
def test_a_server_that_takes_no_writes_for_now_is_down(server, store, code):
    store.push("other", new_jobs(payload("a")))
    with bad_day(server, code), pytest.raises(StoreDown):
        store.push("default", new_jobs(payload("a")))


@contextmanager
def bad_day(server, code):
    begin, end = BAD_DAYS[code]
    server.execute_command(*begin)
    try:
        yield
    finally:
        server.execute_command(*end)


FULL: dict[str, Callable[[Stores, Lease], object]] = {
    "join": lambda stores, _: stores.queue.join() >= 0,
    "join anew": lambda stores, _: stores.queue.join(9) >= 0,
    "stage": lambda stores, _: stores.queue.stage(["default"]).moved == 1,
    "reserve": lambda stores, _: stores.queue.reserve(["default"], 1, 1).leases,
    "renew": lambda stores, lease: stores.queue.renew([lease]) == [True],
    "release now": lambda stores, lease: stores.queue.release(lease, 0.0, "a", "crashes"),
    "release later": lambda stores, lease: stores.queue.release(lease, 5.0, "a"),
    "give back": lambda stores, lease: stores.queue.give_back([lease]) == [True],
    "give back and count": lambda stores, lease: stores.queue.give_back([lease], "a") == [True],
    "count a crash": lambda stores, _: stores.queue.count_crash("a") == 1,
    "show its state": lambda stores, lease: (
        stores.queue.show([lease], [StateRecord("a", b"running", 60.0)]) or stores.values.state("a")
    ),
    "reclaim": lambda stores, _: stores.queue.reclaim(["default"], 1, 1.0, known=()),
    "fail": lambda stores, lease: stores.queue.fail(lease, "a", {**RECORD, "payload": ""}),
    "quarantine": lambda stores, lease: stores.queue.quarantine(lease, "odd"),
    "publish": lambda stores, _: stores.control.publish("p", {"host": "h", "pool": "p"}) or stores.control.pools(),
    "retire": lambda stores, _: (
        stores.queue.retire(9) or stores.queue.client.command("ZSCORE", stores.queue.keys.tags, 9)
    ),
    "record": lambda stores, _: stores.failed.record(PendingFailure("f", RECORD)) or stores.failed.page(),
}


@pytest.mark.fault("F49")
@pytest.mark.parametrize("verb", FULL)
def test_a_full_server_lets_jobs_be_moved_and_ended(server, stores, store, verb):
    [lease] = reserved(store, JOB)
    store.push("default", new_jobs(payload("b")), delay=1.0)
    store.clock = repr(NOW + 1)

    with bad_day(server, "OOM"):
        assert FULL[verb](stores, lease)


@pytest.mark.fault("F48", "F50")
@pytest.mark.parametrize("code", ["NOREPLICAS", "READONLY"])
def test_a_lease_is_not_taken_for_gone_because_the_server_takes_no_writes(server, store, code):
    done = reserved(store, JOB)

    with bad_day(server, code), pytest.raises(StoreDown):
        store.reserve(["default"], 1, 1, done)

    assert [] == store.reserve(["default"], 1, 1, done).refused


@pytest.mark.fault("F48", "F50")
@pytest.mark.parametrize("verb", ["reserve", "stage"])
@pytest.mark.parametrize("code", ["NOREPLICAS", "READONLY"])
def test_a_queue_is_not_broken_because_the_server_takes_no_writes(server, store, code, verb):
    store.push("default", new_jobs(JOB), delay=1.0)
    store.clock = repr(NOW + 1)
    verbs = {
        "reserve": lambda: store.reserve(["default"], 1, 1).leases,
        "stage": lambda: store.stage(["default"]).moved,
    }

    with bad_day(server, code), pytest.raises(StoreDown):
        verbs[verb]()

    assert verbs[verb]()
    assert 0 == store.sizes("default").delayed


@pytest.mark.fault("F58")
def test_a_wrong_password_is_an_outage_that_does_not_repeat_it(redis_socket):
    stores = Stores(ConnectionSettings(url=f"unix://someone:s3cr3t@{redis_socket}"), shared=True)

    # A password is changed while jobs run: what they did must still be settled when it is right again.
    with pytest.raises(StoreDown) as refused:
        stores.queue.join()
    assert "s3cr3t" not in str(refused.value)


@pytest.fixture
def mute(server, redis_socket, connection):
    """The store of somebody who may not publish."""
    server.execute_command("ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-publish")
    stores = Stores(dataclasses.replace(connection, url=f"unix://mute:secret@{redis_socket}"))
    yield stores.queue
    stores.close()
    server.execute_command("ACL", "DELUSER", "mute")


def test_who_may_not_wake_the_stewards_delays_jobs_all_the_same(mute):
    mute.push("default", new_jobs(payload("a")), delay=60.0)

    assert mute.release(reserved(mute, payload("b"))[0], 30.0, "b")
    assert 2 == mute.sizes("default").delayed


def test_a_command_that_the_server_refuses_is_an_error_and_no_outage(server, store):
    server.set(READY, "x")

    with pytest.raises(StoreError) as refused:
        store.push("default", new_jobs(payload("a")))
    assert not isinstance(refused.value, StoreDown)
