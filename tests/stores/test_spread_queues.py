"""Queues of several hash tags on one cluster: what spans several slots, and what is refused there.

All that one queue does is in the contract (tests/stores/contract), which runs on them too.
"""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import pytest

from queuepool.board.blame import Blame
from queuepool.board.board import Board, Role, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.errors import NeedsOneSlot, PartDown, PartNotReplicated
from queuepool.payload.lease import Ending, Outcome, StateRecord
from queuepool.payload.limits import PlaceAsked
from queuepool.payload.members import NewFlow
from queuepool.steward.leases import Renew
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import MovedJob, NewJob, ShelfJob
from queuepool.stores.factory import Stores
from queuepool.stores.redis import replicas
from queuepool.stores.redis.cluster import slot_of
from queuepool.stores.redis.spread import groups
from queuepool.stores.redis.spread.relay import parcel, relay_of
from queuepool.stores.redis.wire import braced
from tests.support.boards import process
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.processes import halted
from tests.support.redis_cluster import SLOTS, Cluster, spread_on_cluster
from tests.support.samples import ids, new_jobs, payload

#: each on another master
QUEUES = ["a", "b", "c"]
#: seconds that a call waits for a reply; of one that is to be given up
PATIENCE, SHORT = 20.0, 0.5


@pytest.fixture
def cluster(cluster_nodes: Cluster) -> Cluster:
    cluster_nodes.flush()
    return cluster_nodes


@pytest.fixture
def stores(cluster: Cluster) -> Iterator[Stores]:
    found = Stores(spread_on_cluster(cluster.url), reply_timeout=PATIENCE)
    yield found
    found.close()


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


@contextmanager
def hurried(stores: Stores, *queues: str) -> Iterator[None]:
    """The connections for these queues wait less meanwhile; any other call may need its time on a crowded machine."""
    connections = [stores.queue._groups.of(queue).client._connection.raw for queue in queues]
    limit(connections, SHORT)
    yield
    limit(connections, PATIENCE)


def limit(connections: list[Any], seconds: float) -> None:
    for one in connections:
        one.socket_timeout = one.socket_connect_timeout = seconds  # for when it opens again
        if one._sock:
            one._sock.settimeout(seconds)


@each(
    ("queue", "key"),
    [
        ("mail", "{mail}"),
        ("{mail}", "{mail}"),
        ("{app}high", "{app}high"),
        ("app{high}", "app{high}"),
        ("a.b:c", "{a.b:c}"),
    ],
)
def test_a_key_has_the_tag_that_laravel_gives_it(queue, key):
    assert key == braced(queue)


def test_a_queue_has_one_key_with_and_without_braces(cluster, store):
    store.push("b", new_jobs(payload("1")))
    store.push("{b}", new_jobs(payload("2")))

    assert 2 == cluster.owner(3300).say("LLEN", "queues:{b}")
    assert ["b"] == store.queues()
    assert (2, 2) == (store.sizes("b").ready, store.sizes("{b}").ready)


def test_jobs_are_taken_in_the_order_of_the_queues_wherever_they_are(store):
    for queue in reversed(QUEUES):
        store.push(queue, new_jobs(payload(f"{queue}1"), payload(f"{queue}2")))
    tag = store.join()

    first = store.reserve(QUEUES, tag, 3)
    rest = store.reserve(QUEUES, tag, 10, first.leases)

    assert ["a1", "a2", "b1"] == ids(first.leases)
    assert ["b2", "c1", "c2"] == ids(rest.leases)
    assert ([], []) == (rest.refused, rest.problems)
    assert [0, 1, 2] == [store.sizes(queue).total for queue in QUEUES]


@each("queue", QUEUES)
def test_a_push_to_any_of_them_ends_a_wait(cluster, stores, store, queue):
    other = Stores(spread_on_cluster(cluster.url), reply_timeout=PATIENCE)
    store.reserve(QUEUES, store.join(), 1)
    ended: list[float] = []
    waiting = threading.Thread(target=lambda: ended.append(_seconds_of(lambda: store.wait(QUEUES, 30.0))))
    waiting.start()
    eventually(lambda: sum(b"cmd=blpop" in _clients(node) for node in cluster.masters()) == len(QUEUES))

    other.queue.push(queue, new_jobs(payload("a")))
    waiting.join()
    other.close()

    assert ended[0] < 20.0
    assert ["a"] == ids(store.reserve(QUEUES, store.join(), 1).leases)


@pytest.mark.thorough("it interrupts a wait at each of some hundred lines")
def test_a_signal_at_any_moment_of_a_wait_leaves_no_reply_behind(cluster, stores, store):
    tag = store.join()
    store.reserve(QUEUES, tag, 1)
    pushed = {queue: new_jobs(payload(queue)) for queue in ("b", "c")}
    number, is_interrupted = 0, True
    while is_interrupted:
        number += 1
        for queue, jobs in pushed.items():
            store.push(queue, jobs)
        is_interrupted = _interrupted(number, lambda: store.wait(QUEUES, 0.05))
        found = store.reserve(QUEUES, tag, 10)
        assert ([*pushed], []) == (ids(found.leases), found.problems), number
        store.delete(found.leases)

    assert number > 50


class _Signal(BaseException):
    pass


def _interrupted(number: int, call: Any) -> bool:
    """Whether a signal's handler has raised at this line of those that the call runs in our code."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_globals["__name__"].startswith("queuepool."):
            return None
        left -= event == "line"
        if not left:
            sys.settrace(None)
            raise _Signal
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except _Signal:
        return True
    finally:
        sys.settrace(before)
    return False


def _seconds_of(call: Any) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _clients(node: Any) -> bytes:
    # In one word, so that redis-py does not translate the reply.
    connection = node.client.connection_pool.get_connection()
    try:
        connection.send_command("CLIENT", "LIST")
        return bytes(connection.read_response())
    finally:
        node.client.connection_pool.release(connection)


def test_what_follows_a_job_comes_to_a_queue_in_another_slot(store):
    store.push("a", new_jobs(payload("1")))
    [lease] = store.reserve(QUEUES, store.join(), 1).leases

    assert store.finish(lease, Ending(outcome=Outcome("b", payload("2"))))
    assert not store.finish(lease, Ending(outcome=Outcome("b", payload("2"))))

    assert (0, 1) == (store.sizes("a").total, store.sizes("b").ready)


def test_what_a_process_has_left_on_its_way_is_carried_once(store):
    left, relay = parcel("b", payload("1")), relay_of("a")
    for _ in range(2):  # the second time as one that has carried it, but died before it took it away
        store.push(relay, [NewJob(left)])
        store.stage(["a"])

    assert (1, 0) == (store.sizes("b").ready, store.sizes(relay).total)
    assert ["b"] == store.queues()


def test_a_job_that_its_queue_refuses_holds_up_no_other_on_its_way(cluster, store):
    cluster.owner(slot_of("b")).say("SET", "queues:{b}", "of another type")
    store.push(relay_of("a"), [NewJob(parcel("b", payload("1"))), NewJob(parcel("c", payload("2")))])

    store.stage(["a"])

    assert (1, 1) == (store.sizes("c").ready, store.sizes(relay_of("a")).ready)


def test_what_is_no_parcel_stays_and_holds_up_no_other(cluster, store):
    for raw in (b"", b"{}", b"\xff", parcel("}x", b"1"), parcel("\ud800\n", b"1"), parcel("c", payload("1"))):
        cluster.owner(slot_of("a")).say("RPUSH", f"queues:{relay_of('a')}", raw)

    store.stage(["a"])

    assert (1, 5) == (store.sizes("c").ready, store.sizes(relay_of("a")).ready)


def test_the_state_of_a_job_is_known_while_another_node_is_away(cluster, stores):
    stores.queue.push("a", [NewJob(payload("1"), state=StateRecord("1", b"{}", 60.0))])
    stores.queue.push("b", [NewJob(payload("2"), state=StateRecord("2", b"{}", 60.0))])

    with hurried(stores, "a"), halted(cluster.owner(slot_of("a")).process.pid):
        assert b"{}" == stores.values.state("2")
        with pytest.raises(PartDown):
            stores.values.state("1")


def test_a_node_that_hangs_is_waited_for_once_and_not_for_each_hash_tag_that_is_there(cluster, stores):
    queues = [f"q{number}" for number in range(60) if slot_of(f"q{number}") < SLOTS // 3]
    for queue in queues:
        stores.queue.sizes(queue)

    with hurried(stores, *queues), halted(cluster.owner(0).process.pid):
        began = time.monotonic()
        for queue in queues:
            with pytest.raises(PartDown, match=queue):
                stores.queue.sizes(queue)
        assert time.monotonic() - began < SHORT * len(queues) / 2


def test_a_node_that_is_left_alone_is_asked_by_who_has_no_time_to_wait(cluster, stores, monkeypatch):
    stores.queue.push("a", new_jobs(payload("1")))
    monkeypatch.setattr(groups, "_AGAIN", 3600.0)  # a crowded machine may need two seconds from one call to the next

    with hurried(stores, "a"), halted(cluster.owner(slot_of("a")).process.pid), pytest.raises(PartDown):
        stores.queue.sizes("a")
    with pytest.raises(PartDown):
        stores.queue.sizes("a")
    stores.ask_again()
    assert 1 == stores.queue.sizes("a").ready


def test_a_worker_with_a_job_of_a_node_that_is_away_is_not_shown_to_hold_it_for_longer(cluster, stores, tmp_path):
    board = Board.create(tmp_path / "board.1-1", 2)
    boards = OrphanedBoards(board, RuntimeDir(PoolSettings(runtime_dir=tmp_path / "gone")), Blame(board.header))
    both, other = (process(board, number, Role.WORKER, number, State.BUSY) for number in range(2))
    tag, renew = stores.queue.join(), Renew(boards, stores.queue, 90.0)
    for slot, queues in ((both, ["a", "b"]), (other, ["b"])):
        for queue in queues:
            stores.queue.push(queue, new_jobs(payload(queue)))
        slot.hold(stores.queue.reserve(queues, tag, 2).leases)
        slot.hand_number = slot.hand_number or 2
        slot.lease_end = time.monotonic() + 1

    with hurried(stores, "a"), halted(cluster.owner(slot_of("a")).process.pid):
        renew.run(time.monotonic())
        assert (True, False) == (other.renewed_end > 0.0, both.renewed_end > 0.0)


def test_what_a_node_took_without_an_answer_is_found_with_the_rest_of_that_reserve(cluster, stores, store):
    silent = cluster.owner(slot_of("b")).process.pid
    tag = store.join()
    store.reserve(QUEUES, tag, 1)
    for queue in ("a", "b"):
        store.push(queue, new_jobs(payload(queue)))

    with hurried(stores, "b"), halted(silent), pytest.raises(PartDown):
        store.reserve(["a", "b"], tag, 2)
    eventually(lambda: cluster.owner(slot_of("b")).say("LLEN", "queues:{b}") == 0)  # it takes the job now
    old, tag = tag, store.join(tag)
    store.reclaim(["a", "b"], old, 10.0, [])

    assert ["a"] == _taken(store, "a", tag)
    assert ["b"] == eventually(lambda: _taken(store, "b", tag))


def _taken(store: Any, queue: str, tag: int) -> list[str]:
    with suppress(PartDown):
        return ids(store.reserve([queue], tag, 1).leases)
    return []


def test_a_tag_that_another_worker_has_somewhere_is_not_drawn(cluster, store, monkeypatch):
    taken = cluster.owner(slot_of("b"))
    taken.say("ZADD", "{b}:queuepool:tags", time.time() + 600, 5)
    drawn = iter([4, 6])
    monkeypatch.setattr(secrets, "randbelow", lambda _: next(drawn))

    assert 7 == store.join(queues=QUEUES)
    assert [] == store.reserve(QUEUES, 7, 1).problems
    retired = [cluster.owner(slot_of(queue)).say("ZSCORE", f"{{{queue}}}:queuepool:tags", 5) for queue in QUEUES]
    assert [True, False, None] == [score and float(score) < 0 for score in retired]


def test_a_job_that_has_failed_is_with_all_others_and_comes_back_to_its_queue(stores, store):
    store.push("b", new_jobs(payload("1")))
    [lease] = store.reserve(QUEUES, store.join(), 1).leases
    record = {"id": "1", "queue": "b", "connection": "x", "payload": payload("1").decode(), "exception": "e"}

    assert store.fail(lease, "1", record)
    [failed] = stores.failed.page()

    assert stores.failed.retry(failed)
    assert (1, 0) == (store.sizes("b").ready, stores.failed.count())


def test_what_cannot_be_done_over_several_slots_is_refused_and_nothing_is_written(store):
    store.push("a", new_jobs(payload("1")))
    limited = NewJob(payload("2"), word="w", asked=[PlaceAsked("l", "", 1, 0.0)])
    refused = [
        lambda: store.write_flow(NewFlow("f", "f", 1, 1, True, 60.0, 60.0), []),
        lambda: store.push("a", [limited]),
        lambda: store.move("a", [MovedJob(ShelfJob(payload("1"), "ready"), payload("1"))], "b"),
        lambda: store.limits.declare("l", 1, 0.0),
    ]
    for call in refused:
        with pytest.raises(NeedsOneSlot, match="needs all keys of a cluster in one slot"):
            call()

    assert (1, 0) == (store.sizes("a").total, store.sizes("b").total)


def test_a_node_that_hangs_is_waited_for_as_long_as_a_reply_may_take_and_not_as_a_job_may(cluster):
    stores = Stores(replace(spread_on_cluster(cluster.url), block_for=60.0), reply_timeout=SHORT)
    eventually(lambda: _is_answered(lambda: stores.queue.sizes("b")))
    tag = stores.queue.join()

    began = time.monotonic()
    with halted(cluster.owner(slot_of("b")).process.pid), pytest.raises(PartDown):
        stores.queue.reserve(["b"], tag, 1)
    assert time.monotonic() - began < 30.0
    stores.close()


def _is_answered(call: Callable[[], object]) -> bool:
    """Within a short patience, which may be too short for any call on a crowded machine."""
    with suppress(PartDown):
        call()
        return True
    return False


def test_a_producer_has_connections_to_nodes_and_not_to_each_hash_tag(cluster):
    producer = Stores(spread_on_cluster(cluster.url), shared=True)
    before = _connected(cluster)
    for number in range(60):
        producer.queue.push(f"q{number}", [NewJob(payload("1"), state=StateRecord(f"{number}", b"{}", 60.0))])
        assert b"{}" == producer.values.state(f"{number}")

    assert 3 >= _connected(cluster) - before
    assert {1} == {producer.queue.sizes(f"q{number}").ready for number in range(60)}
    producer.close()
    eventually(lambda: before == _connected(cluster))


def _connected(cluster: Cluster) -> int:
    return sum(_clients(node).count(b"name=queuepool") for node in cluster.masters())


def test_a_producer_goes_on_with_other_nodes_and_returns_to_one_that_was_away(cluster, monkeypatch):
    monkeypatch.setattr(groups, "_AGAIN", 3600.0)  # who leaves that one alone does not return
    producer = Stores(spread_on_cluster(cluster.url), shared=True, reply_timeout=PATIENCE)
    client = producer.queue._groups.of("b").client
    client._open = partial(client._open, socket_timeout=SHORT, socket_connect_timeout=SHORT)
    before = _connected(cluster)
    for queue in ("a", "c"):
        producer.queue.push(queue, new_jobs(payload("1")))
    eventually(lambda: _is_answered(lambda: producer.queue.sizes("b")))

    with halted(cluster.owner(slot_of("b")).process.pid):
        for queue in ("a", "c0", "a1"):  # some of them new
            with pytest.raises(PartDown):
                producer.queue.push("b", new_jobs(payload("unsure")))
            producer.queue.push(queue, new_jobs(payload("2")))
    eventually(lambda: _is_answered(lambda: producer.queue.push("b", new_jobs(payload("2")))))

    assert [2, 1, 1] == [producer.queue.sizes(queue).ready for queue in ("a", "c0", "a1")]
    assert 3 >= _connected(cluster) - before
    producer.close()


def test_each_tag_waits_for_its_replicas_on_a_connection_that_another_one_has_made(cluster, monkeypatch):
    settings = replace(spread_on_cluster(cluster.url), wait_replicas="2")
    # Only replicas have less time: a node answers when they have had it, and on a crowded machine still later.
    monkeypatch.setattr(replicas, "Replicas", lambda wanted, _, own=replicas.Replicas: own(wanted, 0.1))
    producer = Stores(settings, shared=True, reply_timeout=PATIENCE)

    for queue in ("{a}1", "{a1}", "{a2}", "{a3}", "{a4}", "{a}2"):
        with pytest.raises(PartNotReplicated):
            producer.queue.push(queue, new_jobs(payload("1")))
    producer.close()
