"""Flows that were stopped, and go on or end: after failures, retries, cancellations and deadlines."""

from __future__ import annotations

import pytest

from queuepool.payload.members import NewMember
from queuepool.stores.flows import FlowEnd
from tests.stores.contract.test_flows import CHAIN, begun, retry, run_all, state
from tests.support.graphs import ended, taken
from tests.support.samples import payload

pytestmark = pytest.mark.usefixtures("at")


def children_of(drawn, *names) -> tuple[NewMember, ...]:
    """Two members that the first member adds."""
    return tuple(
        NewMember(f"0.{number}", "s", "default", 0.0, payload(name, qpFlow=f"{drawn.id}:0.{number}"))
        for number, name in enumerate(names)
    )


def test_what_a_member_adds_to_a_stopped_flow_is_told_of_at_once(built):
    drawn = begun(built, {"split": [], "bad": [], "end?a": ["split", "bad"], "alarm?f": ["split"]})
    found = taken(built.queue)
    ended(built.queue, found["bad"], "f")
    ended(built.queue, found["split"], children=children_of(drawn, "part0", "part1"))

    assert ["alarm?f", "end?a"] == sorted(run_all(built))
    assert "failed" == state(built, drawn)
    retry(built, "bad")
    assert ["bad", "part0", "part1"] == sorted(run_all(built))
    assert "done" == state(built, drawn)


def test_a_flow_that_is_resumed_after_its_deadline_has_a_day(built, at):
    graph = {"first": [], **{f"m{number}": ["first"] for number in range(600)}}
    drawn = begun(built, graph, deadline=100.0)
    [lease] = taken(built.queue).values()
    ended(built.queue, lease, "f")
    at.advance(200)
    built.flows.look()
    retry(built, "first")
    [lease] = taken(built.queue).values()
    ended(built.queue, lease)
    at.advance(60)
    built.flows.look()

    assert "running" == state(built, drawn)
    assert 600 == built.flows.find(drawn.id).counts.running
    at.advance(87000)
    built.flows.look()
    assert "expired" == state(built, drawn)


@pytest.mark.thorough("600 of them; test_a_retry_resumes_the_flow")
def test_many_that_were_ready_start_with_a_retry(built):
    graph = {"bad": [], "first": [], **{f"m{number}": ["first"] for number in range(600)}}
    drawn = begun(built, graph)
    assert ["bad", "first"] == sorted(run_all(built, {"bad": "f"}))
    retry(built, "bad")

    assert 601 == len(taken(built.queue, 2000))
    assert 601 == built.flows.find(drawn.id).counts.running


def test_a_cancelled_flow_whose_queue_was_cleared_ends_after_a_day(built, at):
    drawn = begun(built, CHAIN, deadline=1e7)
    built.flows.cancel(drawn.id)
    built.queue.clear("default")
    at.advance(86401)

    assert [FlowEnd(drawn.id, "drawn", "cancelled")] == built.flows.look()
    assert [] == built.flows.look()


def test_a_member_that_ends_after_its_flow_was_given_up_counts_itself_only(built, at):
    drawn = begun(built, {"a": [], "b": [], "c": ["b"]}, deadline=50.0)
    found = taken(built.queue)
    ended(built.queue, found["b"], "f")
    for seconds in (51, 86401):
        at.advance(seconds)
        built.flows.look()
    assert built.flows.find(drawn.id).is_over
    ended(built.queue, found["a"])
    retry(built, "b")

    assert not built.flows.find(drawn.id).is_over
    built.flows.cancel(drawn.id)
    assert not built.flows.find(drawn.id).is_over
    assert ["b"] == run_all(built)
    assert built.flows.find(drawn.id).is_over


def test_a_failed_member_that_runs_elsewhere_resumes_its_flow_once(built):
    drawn = begun(built, {"bad": [], "first": [], **{f"m{number}": ["first"] for number in range(600)}, "b": ["bad"]})
    assert ["bad", "first"] == sorted(run_all(built, {"bad": "f"}))
    assert [] == built.flows.under_way()
    for _ in range(2):
        built.flows.resume(drawn.id, drawn.numbers["bad"])

    assert [drawn.id] == [one.id for one in built.flows.under_way()]
    assert "running" == state(built, drawn)
    assert (601, 1) == built.flows.find(drawn.id).counts[1::-1]
    assert 600 == len(taken(built.queue, 2000))


@pytest.mark.parametrize("past", [0, 2000])
def test_no_flow_that_was_cancelled_or_has_expired_is_resumed(built, at, past):
    drawn = begun(built, {"bad": [], "other": [], "b": ["bad"]})
    ended(built.queue, taken(built.queue)["bad"], "f")
    at.advance(past)
    built.flows.look() if past else built.flows.cancel(drawn.id)
    built.flows.resume(drawn.id, drawn.numbers["bad"])
    built.flows.resume("A" * 22, "0")

    assert state(built, drawn) == ("expired" if past else "cancelled")
    assert 1 == built.flows.find(drawn.id).counts.failed
