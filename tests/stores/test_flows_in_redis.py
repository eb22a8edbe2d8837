"""Flows as only Redis has them: keys that are gone, and what its scripts read and leave over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from queuepool.errors import StoreError
from queuepool.jobs.following_flows import ended_flow, seen_flow
from queuepool.payload.lease import AttemptRecord, Lease
from queuepool.stores.factory import Stores
from queuepool.stores.flows import FlowEnd
from queuepool.stores.records import Retrying
from tests.support.drivers import connection_of, opened
from tests.support.graphs import Drawn, as_done, ended, taken
from tests.support.store_contract import OURS, Clock

CHAIN = {"a": [], "b": ["a"]}


@pytest.fixture
def built(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of("redis", request)) as stores:
        yield stores


def begun(built: Stores, graph: Any, **about: Any) -> Drawn:
    drawn = Drawn(graph, **about)
    built.flows.write(drawn.flow, drawn.members)
    return drawn


def key_of(built: Stores, drawn: Drawn, end: str) -> bytes:
    [key] = built.client.command("KEYS", f"*flow:{drawn.id}{end}")
    return bytes(key)


@pytest.mark.parametrize("gone", ["", ":letters", ":waiting"], ids=["facts", "letters", "waiting"])
def test_a_member_ends_though_keys_of_its_flow_are_gone(built, gone):
    drawn = begun(built, CHAIN)
    [lease] = taken(built.queue).values()
    built.client.command("DEL", key_of(built, drawn, gone))

    assert ended(built.queue, lease)
    assert 0 == built.queue.sizes("default").total
    if gone == ":waiting":
        assert "failed" == built.flows.find(drawn.id).state


def test_a_failed_member_is_retried_though_the_facts_of_its_flow_are_gone(built):
    drawn = begun(built, CHAIN)
    [lease] = taken(built.queue).values()
    ended(built.queue, lease, "f")
    built.client.command("DEL", key_of(built, drawn, ""))

    assert all(built.failed.retry_all([Retrying(one) for one in built.failed.page()]))
    assert ["a"] == list(taken(built.queue))


def test_a_look_forgets_no_flow_that_was_resumed_meanwhile(built):
    at = Clock(built.queue)
    drawn = begun(built, CHAIN)
    [lease] = taken(built.queue).values()
    ended(built.queue, lease, "f")
    at.advance(31 * 86400.0)
    assert all(built.failed.retry_all([Retrying(one) for one in built.failed.page()]))

    assert 0 == built.flows._script("forget_flow", drawn.id)
    assert ["a"] == list(taken(built.queue))
    assert "running" == built.flows.find(drawn.id).state


@pytest.mark.parametrize("end", ["done", "cancelled", "expired"])
def test_what_flows_that_are_kept_cost_is_not_paid_by_who_asks_for_those_under_way(built, end):
    at = Clock(built.queue)
    drawn = begun(built, CHAIN, deadline=10.0)
    if end == "cancelled":
        built.flows.cancel(drawn.id)
    at.advance(11.0 if end == "expired" else 1.0)
    built.flows.look()
    while found := taken(built.queue):
        for lease in found.values():
            ended(built.queue, lease, "d" if end == "done" else "o")

    assert end == built.flows.find(drawn.id).state
    assert 0 == built.client.command("EXISTS", built.flows._keys.begun_flows)


def test_a_retry_reads_all_letters_only_if_some_were_cancelled(built):
    drawn = begun(built, {name: [] for name in "abc"}, stops=False)
    for lease in taken(built.queue).values():
        ended(built.queue, lease, "f")
    failed = built.failed.page()
    built.client.command("CONFIG", "RESETSTAT")

    assert all(built.failed.retry_all([Retrying(one) for one in failed]))
    assert "cmdstat_hgetall" not in built.client.command("INFO", "commandstats")
    assert 3 == built.flows.find(drawn.id).counts.running


def test_what_was_held_starts_in_several_steps(built):
    graph = {"bad": [], "first": [], **{f"m{number}": ["first"] for number in range(1200)}}
    drawn = begun(built, graph)
    found = taken(built.queue)
    ended(built.queue, found["bad"], "f")
    ended(built.queue, found["first"])
    [failed] = built.failed.page()
    names, words = built.flows._keys.of_flow(drawn.id)
    keys = built.flows._keys
    names = [keys.failed, *names, keys.failed_times, keys.ready("x"), keys.notify("x"), keys.failed, keys.failed]
    args = ["", "0", "", *words, "", failed.id, failed.payload, failed.mark, "", "", "", ""]

    assert 2 == built.client.script("retry_member", names, args)
    assert 501 == built.flows.find(drawn.id).counts.running
    built.flows.go_on(drawn.id)  # as whoever looks next
    assert 1201 == built.flows.find(drawn.id).counts.running


def test_a_cancelled_flow_ends_with_its_last_member_though_its_roots_were_not_all_pushed(built):
    at = Clock(built.queue)
    drawn = Drawn({f"m{number}": [] for number in range(40)}, deadline=1e6)
    built.flows.add(drawn.flow, drawn.members)
    assert b"more" == built.flows._script("start_flow", drawn.id, 10)  # its producer dies here
    built.flows.cancel(drawn.id)
    for lease in taken(built.queue).values():
        ended(built.queue, lease, "o")
    at.advance(10)
    built.flows.look()

    assert built.flows.find(drawn.id).is_over


@pytest.mark.thorough("250,000 edges; test_pieces_may_come_twice_and_half_a_flow_does_not_begin")
def test_members_are_written_in_pieces_by_their_edges(built):
    names = [f"m{number}" for number in range(500)]
    graph = dict.fromkeys(names, ()) | {f"after{number}": names for number in range(500)}
    drawn = Drawn(graph)
    built.client.command("CONFIG", "RESETSTAT")
    built.flows.write(drawn.flow, drawn.members)

    # 250,000 edges of some five bytes, and the payloads
    assert built.client.command("INFO", "commandstats")["cmdstat_evalsha"]["calls"] > 2


def test_the_latest_flows_are_found_in_few_commands(built):
    at, ids = Clock(built.queue), []
    for _ in range(30):
        ids.append(begun(built, {"a": []}).id)
        at.advance(1)
    built.client.command("CONFIG", "RESETSTAT")

    assert ids[:-4:-1] == [one.id for one in built.flows.page(count=3)]
    stats = built.client.command("INFO", "commandstats")
    assert (1, 3) == (stats["cmdstat_evalsha"]["calls"], stats["cmdstat_hgetall"]["calls"])


def test_a_wait_reads_the_members_once_at_the_end(built):
    drawn = begun(built, {f"m{number}": [] for number in range(20)})
    look = partial(seen_flow, built, drawn.id)
    built.client.command("CONFIG", "RESETSTAT")
    with pytest.raises(TimeoutError, match="is running after"):
        ended_flow(look, drawn.id, 0.1)
    assert "cmdstat_hgetall" not in built.client.command("INFO", "commandstats")

    for lease in taken(built.queue).values():
        ended(built.queue, lease)
    assert "20 of 20 done" == ended_flow(look, drawn.id, 10).progress
    assert 1 == built.client.command("INFO", "commandstats")["cmdstat_hgetall"]["calls"]


#: four members, each with one that follows it; that of the last is in a queue whose key another program has
PAIRS = {**{f"m{number}": () for number in range(4)}, **{f"f{number}": (f"m{number}",) for number in range(4)}}


def with_broken(built: Stores, graph: Any, name: str, **about: Any) -> Drawn:
    """A flow in which this member goes to a broken queue."""
    drawn = Drawn(graph, **about)
    drawn.members = [one._replace(queue="bad") if one.number == drawn.numbers[name] else one for one in drawn.members]
    built.client.command("SET", built.queue.keys.ready("bad"), "of another program")
    return drawn


def mend(built: Stores, at: Clock) -> None:
    built.client.command("DEL", built.queue.keys.ready("bad"))
    at.advance(3)
    built.flows.look()


def one_by_one(built: Stores, leases: list[Lease]) -> list[str]:
    assert all(ended(built.queue, lease) for lease in leases)
    return list(taken(built.queue))


def with_a_reserve(built: Stores, leases: list[Lease]) -> list[str]:
    recorded = [as_done(lease)._replace(record=AttemptRecord("id", "{", "", 1000.0)) for lease in leases]
    found = built.queue.reserve(["default"], OURS, 100, recorded)
    built.flows.after(found.flows)
    return [str(json.loads(lease.receipt)["id"]) for lease in found.leases]


@pytest.mark.parametrize("end", [one_by_one, with_a_reserve])
def test_a_broken_queue_keeps_no_other_member_from_beginning(built, end):
    at, drawn = Clock(built.queue), with_broken(built, PAIRS, "f3")
    built.flows.write(drawn.flow, drawn.members)
    began = end(built, list(reversed(taken(built.queue).values())))

    assert {"f0", "f1", "f2"} == set(began)
    counts = built.flows.find(drawn.id).counts
    assert (4, 3, 1) == (counts.done, counts.running, counts.waiting)
    assert "WRONGTYPE" in built.flows.refused
    assert 3 == built.queue.sizes("default").reserved

    mend(built, at)
    assert 4 == built.flows.find(drawn.id).counts.running


@pytest.mark.parametrize("rule", ["", "?f", "?a"])
def test_a_member_of_a_broken_queue_begins_later_by_its_rule(built, rule):
    at, name = Clock(built.queue), f"after{rule}"
    drawn = with_broken(built, {"a": (), name: ("a",)}, name)
    built.flows.write(drawn.flow, drawn.members)
    ended(built.queue, *taken(built.queue).values(), "f" if rule == "?f" else "d")

    assert "WRONGTYPE" in built.flows.refused
    built.flows.cancel(drawn.id)
    mend(built, at)
    counts = built.flows.find(drawn.id).counts
    assert (counts.running, counts.cancelled) == ((1, 0) if rule else (0, 1))


def test_a_flow_with_a_broken_alarm_ends_once_that_is_pushed(built):
    at = Clock(built.queue)
    drawn = with_broken(built, {"a": ()}, "a", on_failure=("bad", b"{}"))
    drawn.members = [one._replace(queue="default") for one in drawn.members]
    built.flows.write(drawn.flow, drawn.members)

    assert ended(built.queue, *taken(built.queue).values(), "f")
    assert "WRONGTYPE" in built.flows.refused
    assert not built.flows.find(drawn.id).is_over
    mend(built, at)
    assert "failed" == built.flows.find(drawn.id).state
    assert built.flows.find(drawn.id).is_over
    assert 1 == built.queue.sizes("bad").ready


def test_a_push_of_a_flow_says_that_a_queue_is_broken_and_begins_the_rest(built):
    at, drawn = Clock(built.queue), with_broken(built, {"a": (), "b": (), "c": ()}, "b")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        built.flows.write(drawn.flow, drawn.members)

    assert {"a", "c"} == set(taken(built.queue))
    mend(built, at)
    assert 3 == built.flows.find(drawn.id).counts.running


def test_a_reserve_follows_few_edges_of_all_its_flows_together(built):
    graph = {"root": (), **{f"p{number}": ("root",) for number in range(200)}}
    drawn = [begun(built, graph) for _ in range(8)]
    leases = built.queue.reserve(["default"], OURS, 100).leases
    found = built.queue.reserve(["default"], OURS, 0, [as_done(lease) for lease in leases])

    assert 500 == built.queue.sizes("default").ready
    assert ["more"] * 6 == [flow.state for flow in found.flows]
    built.flows.after(found.flows)
    assert [200] * 8 == [built.flows.find(one.id).counts.running for one in drawn]


@pytest.mark.parametrize("end", [one_by_one, with_a_reserve])
def test_a_queue_that_the_user_may_not_write_keeps_no_other_member_from_beginning(built, request, end):
    drawn = Drawn(PAIRS)
    drawn.members = [one._replace(queue="bad") if one.number == drawn.numbers["f3"] else one for one in drawn.members]
    built.flows.write(drawn.flow, drawn.members)
    keys, connection = built.queue.keys, connection_of("redis", request)
    allowed = f"~{keys.ready('default')}*", f"~{keys.tags.partition('queuepool:')[0]}queuepool:*"
    built.client.command("ACL", "SETUSER", "narrow", "on", ">narrow", "+@all", "&*", *allowed)
    with opened(replace(connection, url=connection.url.replace("://", "://narrow:narrow@"))) as narrow:
        began = end(narrow, list(reversed(taken(narrow.queue).values())))

        assert {"f0", "f1", "f2"} == set(began)
        assert "may not use a key" in narrow.flows.refused
        assert narrow.queue._recording._denied_until == 0.0
    built.client.command("ACL", "DELUSER", "narrow")
    assert built.flows.after([FlowEnd(drawn.id, "", "more")]) == []
    assert 4 == built.flows.find(drawn.id).counts.running
