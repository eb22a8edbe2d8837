"""A reserve that waits at the server, behind a BLPOP that was sent in the same write. Only Redis has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown, StoreError, TagRetired
from queuepool.stores.factory import Stores
from tests.support.drivers import connection_of
from tests.support.eventually import eventually
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import LONG, OURS, QUEUES, reserved


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of("redis", request)


@pytest.fixture
def elsewhere(connection: ConnectionSettings) -> Iterator[Any]:
    """The store of another process."""
    built = Stores(connection)
    yield built.queue
    built.close()


def waiting(store: Any, queues: tuple[str, ...] = ("default",), seconds: float = LONG, done: Any = ()) -> Any:
    return store.reserve_waiting(queues, seconds, OURS, 1, done)


def is_blocked(server: redis.Redis) -> bool:
    return bool(server.info("clients")["blocked_clients"])


def test_it_is_carried_out_when_a_job_is_pushed_and_not_before(store, elsewhere, server):
    store.reserve(["default"], OURS, 1)  # or the server may not know the script
    reply = waiting(store)
    eventually(lambda: is_blocked(server))
    elsewhere.push("default", new_jobs(payload("a")))
    found = elsewhere.sizes("default")

    reply.wait()
    assert ["a"] == ids(reply.read().leases)
    assert (0, 1) == (found.ready, found.reserved)  # before the worker has read anything


def test_it_takes_nothing_when_the_time_is_over(store):
    reply = waiting(store, seconds=0.01)

    reply.wait()
    assert ([], True) == (reply.read().leases, store.unanswered == 0)


def test_of_two_queues_the_first_is_served_whichever_has_ended_the_wait(store, elsewhere, server):
    elsewhere.push("high", new_jobs(payload("urgent")))
    server.delete(store.keys.notify("high"))  # only the other one has a token
    elsewhere.push("default", new_jobs(payload("usual")))
    reply = waiting(store, QUEUES)

    reply.wait()
    assert ["urgent"] == ids(reply.read().leases)


def test_what_is_done_is_deleted_before_the_wait(store, elsewhere):
    done = reserved(store, payload("a"))
    reply = waiting(store, done=done)

    assert [] == reply.deleted().refused
    assert 0 == elsewhere.sizes("default").total
    elsewhere.push("default", new_jobs(payload("b")))
    reply.wait()
    assert ["b"] == ids(reply.read().leases)


def test_what_is_done_is_deleted_and_the_next_job_is_there_already(store):
    done = reserved(store, payload("a"))
    store.push("default", new_jobs(payload("b")))
    reply = waiting(store, done=done)

    assert [] == reply.deleted().refused
    reply.wait()
    assert ["b"] == ids(reply.read().leases)


def test_a_done_job_whose_lease_is_lost_is_named(store, elsewhere):
    done = reserved(store, payload("a"))
    elsewhere.give_back(done)

    assert done == waiting(store, done=done).deleted().refused


def test_what_was_given_up_is_unanswered_and_no_answer_to_the_next_verb(store, elsewhere, server):
    reply = waiting(store)
    eventually(lambda: is_blocked(server))

    assert (None, 1) == (reply.read(), store.unanswered)
    assert 0 == store.sizes("default").total
    eventually(lambda: not is_blocked(server))
    elsewhere.push("default", new_jobs(payload("a")))
    assert 1 == elsewhere.sizes("default").ready


def test_another_verb_does_not_wait_for_it(store, server):
    reply = waiting(store)
    eventually(lambda: is_blocked(server))

    assert 0 == store.sizes("default").total
    reply.wait()
    assert None is reply.read()


def test_a_connection_that_is_closed_before_a_job_has_come_is_told_from_one_that_is_silent(store, server):
    reply = waiting(store)
    eventually(lambda: is_blocked(server))
    [client] = (one for one in server.client_list() if "b" in one["flags"])
    server.client_kill_filter(_id=client["id"])

    reply.wait()
    with pytest.raises(StoreDown):
        reply.read()
    assert reply.was_cut_off


def test_a_queue_whose_tokens_are_damaged_is_named_and_the_others_are_served(store, server):
    server.set(store.keys.notify("high"), "no list")
    reply = waiting(store, QUEUES)
    reply.wait()
    with pytest.raises(StoreError, match="WRONGTYPE"):
        reply.read()

    store.push("default", new_jobs(payload("a")))
    reply = waiting(store, QUEUES)
    reply.wait()
    found = reply.read()
    assert (["a"], ["high"]) == (ids(found.leases), [queue for queue, _ in found.problems])


def test_a_server_that_has_forgotten_the_script_is_told_it_again(store, server):
    store.push("default", new_jobs(payload("a")))
    server.script_flush()
    reply = waiting(store)

    reply.wait()
    assert ["a"] == ids(reply.read().leases)


def test_a_retired_one_puts_back_the_token_that_its_wait_has_taken(store, elsewhere, server):
    store.reserve(["default"], OURS, 1)
    reply = waiting(store)
    eventually(lambda: is_blocked(server))
    elsewhere.retire(OURS)
    elsewhere.push("default", new_jobs(payload("a")))

    reply.wait()
    with pytest.raises(TagRetired):
        reply.read()
    assert (1, 1) == (elsewhere.sizes("default").ready, server.llen(store.keys.notify("default")))


@pytest.mark.parametrize(
    ("jobs", "limit", "is_last"), [("", 1, True), ("a", 1, True), ("ab", 1, False), ("ab", 2, True)]
)
def test_a_reserve_says_whether_it_has_left_a_job(store, jobs, limit, is_last):
    store.push("default", new_jobs(*map(payload, jobs)))

    assert is_last == store.reserve(["default"], OURS, limit).is_last


@pytest.mark.parametrize(("queue", "is_last"), [("high", False), ("default", True)])
def test_it_does_not_say_so_of_queues_at_which_it_has_not_looked(store, queue, is_last):
    store.push(queue, new_jobs(payload("a")))

    assert is_last == store.reserve(QUEUES, OURS, 1).is_last
