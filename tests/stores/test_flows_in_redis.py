"""Flows as only Redis has them: keys that are gone, and what its scripts read and leave over."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from queuepool.jobs.following_flows import ended_flow, seen_flow
from queuepool.stores.factory import Stores
from queuepool.stores.records import Retrying
from tests.support.drivers import connection_of, opened
from tests.support.graphs import Drawn, ended, taken
from tests.support.store_contract import Clock

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
