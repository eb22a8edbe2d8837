"""Flows: a member starts when those that it follows have ended, once; the flow ends with its last running member."""

from __future__ import annotations

import json

import pytest

from queuepool.errors import NoSuchFlow
from queuepool.payload.lease import Ending, Lease, LeaseRow, StateRecord, Unlock
from queuepool.payload.members import MemberEnd, NewMember
from queuepool.stores.flows import FlowEnd, FlowFilter, FlowStanding
from queuepool.stores.records import Retrying
from tests.support.graphs import Drawn, ended, taken
from tests.support.samples import new_jobs, payload, record
from tests.support.store_contract import RETRY_AFTER, THEIRS

pytestmark = pytest.mark.usefixtures("at")

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
FAN = {"a": [], "b": [], "c": [], "merge": ["a", "b", "c"]}


def begun(built, graph, **about) -> Drawn:
    drawn = Drawn(graph, **about)
    built.flows.write(drawn.flow, drawn.members)
    return drawn


def letters(built, drawn) -> dict[str, str]:
    found = {one.number: one.letter for one in built.flows.members(drawn.id)}
    return {name: found[number] for name, number in drawn.numbers.items()}


def state(built, drawn) -> str:
    return built.flows.find(drawn.id).state


def run_all(built, how=None) -> list[str]:
    """End all jobs, done if ``how`` does not say otherwise, until none is ready; returns them in order."""
    ran = []
    while found := taken(built.queue):
        for name, lease in found.items():
            ran.append(name)
            assert ended(built.queue, lease, (how or {}).get(name, "d"))
    return ran


def test_a_chain_runs_in_its_order_and_ends(built):
    drawn = begun(built, CHAIN)

    assert ["a", "b", "c"] == run_all(built)
    assert FlowEnd(drawn.id, "drawn", "done") == built.flows.last_end
    assert "done" == state(built, drawn)


def test_how_a_flow_stands(built):
    assert None is built.flows.standing("A" * 22)
    drawn = begun(built, CHAIN)
    assert FlowStanding("running", is_over=False) == built.flows.standing(drawn.id)
    built.flows.cancel(drawn.id)
    assert FlowStanding("cancelled", is_over=False) == built.flows.standing(drawn.id)
    [lease] = taken(built.queue).values()
    ended(built.queue, lease)

    assert FlowStanding("cancelled", is_over=True) == built.flows.standing(drawn.id)


def test_the_callback_waits_for_all(built):
    drawn = begun(built, FAN)
    found = taken(built.queue)

    assert ["a", "b", "c"] == sorted(found)
    assert ended(built.queue, found["a"])
    assert ended(built.queue, found["c"])
    assert {} == taken(built.queue)
    assert ended(built.queue, found["b"])
    assert None is built.flows.last_end
    assert ["merge"] == list(taken(built.queue))
    assert {"a": "d", "b": "d", "c": "d", "merge": "r"} == letters(built, drawn)


def test_a_payload_is_pushed_as_it_was_written(built):
    drawn = begun(built, CHAIN)
    [first] = taken(built.queue).values()
    ended(built.queue, first)
    [second] = taken(built.queue).values()

    assert json.loads(drawn.members[1].payload) | {"attempts": 1} == json.loads(second.receipt) | {"attempts": 1}


def test_members_start_on_their_own_queues_and_after_their_delays(built, at):
    drawn = Drawn(CHAIN)
    first, second, third = drawn.members
    built.flows.write(drawn.flow, [first, second._replace(queue="high", delay=5.0), third])
    [lease] = taken(built.queue).values()
    ended(built.queue, lease)

    assert 1 == built.queue.sizes("high").delayed
    at.advance(6)
    built.queue.stage(["high"])
    [lease] = built.queue.reserve(["high"], THEIRS, 1).leases
    assert "high" == lease.queue


def test_an_end_that_is_repeated_counts_once(built):
    begun(built, FAN)
    found = taken(built.queue)

    assert ended(built.queue, found["a"])
    assert not ended(built.queue, found["a"])
    assert ended(built.queue, found["b"])
    assert {} == taken(built.queue)


def test_an_end_under_a_lost_lease_counts_nothing(built, at):
    begun(built, CHAIN)
    [late] = taken(built.queue).values()
    at.advance(RETRY_AFTER + 1)
    built.queue.stage(["default"])
    [again] = built.queue.reserve(["default"], THEIRS, 1).leases

    assert not ended(built.queue, late)
    assert 0 == built.queue.sizes("default").ready
    assert ended(built.queue, again)
    assert ["b"] == list(taken(built.queue))


def test_a_copy_of_a_job_ends_and_counts_nothing(built):
    drawn = begun(built, FAN)
    found = taken(built.queue)
    ended(built.queue, found["a"])
    built.queue.push("default", new_jobs(drawn.members[0].payload))
    [copy] = taken(built.queue).values()

    assert ended(built.queue, copy)
    assert {"a": "d", "b": "r", "c": "r", "merge": "w"} == letters(built, drawn)
    assert 2 == built.queue.sizes("default").reserved


def test_pieces_may_come_twice_and_half_a_flow_does_not_begin(built):
    drawn = Drawn(FAN)
    assert built.flows.add(drawn.flow, drawn.members[:2])
    assert built.flows.add(drawn.flow, drawn.members[:2])
    with pytest.raises(NoSuchFlow):
        built.flows.start(drawn.id)
    assert 0 == built.queue.sizes("default").total
    assert "building" == state(built, drawn)

    built.flows.add(drawn.flow, drawn.members[2:])
    built.flows.start(drawn.id)
    built.flows.start(drawn.id)
    assert not built.flows.add(drawn.flow, drawn.members)
    assert ["a", "b", "c", "merge"] == sorted(run_all(built))


def test_a_flow_that_never_began_is_forgotten(built, at):
    drawn = Drawn(FAN)
    built.flows.add(drawn.flow, drawn.members[:2])
    at.advance(3500)
    built.flows.look()
    assert "building" == state(built, drawn)
    at.advance(200)
    built.flows.look()

    assert None is built.flows.find(drawn.id)
    assert [] == built.flows.members(drawn.id)


def test_a_failure_keeps_the_rest_from_starting(built):
    drawn = begun(built, {"a": [], "x": [], "b": ["a"], "y": ["x"]})
    found = taken(built.queue)
    ended(built.queue, found["a"], "f")
    assert frozenset([drawn.id]) == built.flows.stopped()
    assert "failing" == state(built, drawn)
    ended(built.queue, found["x"])

    assert {} == taken(built.queue)
    assert FlowEnd(drawn.id, "drawn", "failed") == built.flows.last_end
    assert frozenset() == built.flows.stopped()
    assert {"a": "f", "x": "d", "b": "c", "y": "c"} == letters(built, drawn)


def test_a_failure_may_stop_only_what_follows_it(built):
    drawn = begun(built, {"a": [], "x": [], "b": ["a"], "y": ["x"]}, stops=False)

    assert ["a", "x", "y"] == sorted(run_all(built, {"a": "f"}))
    assert "failed" == state(built, drawn)


@pytest.mark.parametrize(
    ("how", "ran"), [("d", ["a", "b", "end?a"]), ("f", ["a", "alarm?f", "end?a"])], ids=["done", "failed"]
)
def test_rules_say_after_what_a_member_starts(built, how, ran):
    drawn = begun(built, {"a": [], "b": ["a"], "alarm?f": ["a"], "end?a": ["b"]})

    assert ran == sorted(run_all(built, {"a": how}))
    assert ("done" if how == "d" else "failed") == state(built, drawn)
    assert ("k" if how == "d" else "d") == letters(built, drawn)["alarm?f"]


def test_a_job_is_pushed_when_the_flow_fails(built):
    begun(built, CHAIN, on_failure=("default", payload("alarm")))
    [lease] = taken(built.queue).values()
    ended(built.queue, lease, "f")

    assert ["alarm"] == list(taken(built.queue))


def test_no_such_job_is_pushed_when_it_does_not(built):
    begun(built, CHAIN, on_failure=("default", payload("alarm")))

    assert ["a", "b", "c"] == run_all(built)


def retry(built, name: str) -> None:
    failed = built.failed.get(name)
    assert [True] == list(map(bool, built.failed.retry_all([Retrying(failed)])))


def test_a_retry_resumes_the_flow(built):
    drawn = begun(built, {"a": [], "x": [], "b": ["a"], "y": ["x"], "end?a": ["b", "y"]})

    assert ["a", "end?a", "x"] == sorted(run_all(built, {"a": "f"}))
    retry(built, "a")
    assert "running" == state(built, drawn)
    assert ["a", "b", "y"] == sorted(run_all(built))
    assert "done" == state(built, drawn)


def test_a_retry_while_others_run(built):
    drawn = begun(built, FAN)
    found = taken(built.queue)
    ended(built.queue, found["a"], "f")
    retry(built, "a")
    ended(built.queue, found["b"])
    ended(built.queue, found["c"])
    assert "running" == state(built, drawn)

    assert ["a", "merge"] == run_all(built)
    assert "done" == state(built, drawn)


def test_a_member_of_a_flow_that_is_gone_is_retried_alone(built, at):
    begun(built, CHAIN)
    run_all(built, {"a": "f"})
    at.advance(31 * 86400.0)
    built.flows.look()

    retry(built, "a")
    assert ["a"] == run_all(built)


def test_a_cancelled_flow_starts_no_more(built):
    drawn = begun(built, {"a": [], "b": ["a"], "end?a": ["b"]})
    [lease] = taken(built.queue).values()

    assert built.flows.cancel(drawn.id)
    assert frozenset([drawn.id]) == built.flows.stopped()
    ended(built.queue, lease)
    assert ["end?a"] == run_all(built)
    assert FlowEnd(drawn.id, "drawn", "cancelled") == built.flows.last_end
    assert not built.flows.cancel(drawn.id)
    with pytest.raises(NoSuchFlow):
        built.flows.cancel("A" * 22)


def test_members_that_are_left_out_are_cancelled_and_come_back_with_a_retry(built):
    drawn = begun(built, {"a": [], "x": [], "b": ["x"]})
    found = taken(built.queue)
    ended(built.queue, found["a"], "f")
    ended(built.queue, found["x"], "o")
    assert {"a": "f", "x": "c", "b": "c"} == letters(built, drawn)
    assert "failed" == state(built, drawn)

    retry(built, "a")
    assert ["a", "b", "x"] == sorted(run_all(built))
    assert "done" == state(built, drawn)


def test_a_member_that_is_left_out_too_late_is_put_back(built):
    drawn = begun(built, {"a": [], "x": []})
    found = taken(built.queue)
    ended(built.queue, found["a"], "f")
    retry(built, "a")
    ended(built.queue, found["x"], "o")

    assert ["a", "x"] == sorted(run_all(built))
    assert "done" == state(built, drawn)


def test_after_its_deadline_a_flow_starts_no_more(built, at):
    drawn = begun(built, CHAIN, deadline=50.0)
    [lease] = taken(built.queue).values()
    at.advance(49)
    assert [] == built.flows.look()
    assert "running" == state(built, drawn)
    at.advance(2)
    assert [] == built.flows.look()
    assert "expired" == state(built, drawn)
    ended(built.queue, lease)

    assert FlowEnd(drawn.id, "drawn", "expired") == built.flows.last_end


def test_a_flow_whose_queues_were_cleared_ends_a_day_after_its_deadline(built, at):
    drawn = begun(built, CHAIN, deadline=50.0)
    built.queue.clear("default")
    at.advance(51)
    assert [] == built.flows.look()
    at.advance(86401)

    assert [FlowEnd(drawn.id, "drawn", "expired")] == built.flows.look()
    assert built.flows.find(drawn.id).is_over


def test_a_done_flow_is_kept_for_a_while(built, at):
    drawn = begun(built, CHAIN, keep=100.0)
    run_all(built)
    at.advance(99)
    built.flows.look()
    assert "done" == state(built, drawn)
    at.advance(2)
    built.flows.look()

    assert drawn.id not in [one.id for one in built.flows.page()]


def test_results_are_kept_for_those_that_take_them(built):
    drawn = begun(built, FAN)
    found = taken(built.queue)
    ended(built.queue, found["a"], result='"\u00e4"')
    ended(built.queue, found["b"], result="[1,2]")

    numbers = [drawn.numbers[name] for name in ("b", "a", "c")]
    assert [b"[1,2]", '"\u00e4"'.encode(), None] == built.flows.results(drawn.id, numbers)
    assert [] == built.flows.results(drawn.id, [])


@pytest.mark.thorough("megabytes of results")
@pytest.mark.megabytes
def test_results_above_the_bound_are_not_kept(built):
    drawn = begun(built, {str(number): [] for number in range(3)})
    large = json.dumps("x" * (6 * 1024 * 1024))
    for lease in taken(built.queue).values():
        assert ended(built.queue, lease, result=large)

    kept = built.flows.results(drawn.id, ["0", "1", "2"])
    assert 2 == len([one for one in kept if one])


def test_what_a_member_adds_is_waited_for(built):
    drawn = begun(built, {"split": [], "merge": ["split"]})
    [lease] = taken(built.queue).values()
    children = tuple(
        NewMember(
            f"0.{number}", "s", "default", 0.0, payload(f"part{number}", qpFlow=f"{drawn.id}:0.{number}"), name="p"
        )
        for number in range(3)
    )
    ended(built.queue, lease, children=children)
    found = taken(built.queue)

    assert ["part0", "part1", "part2"] == sorted(found)
    for part in found.values():
        assert ended(built.queue, part)
    assert ["merge"] == run_all(built)
    assert "done" == state(built, drawn)
    assert 5 == sum(built.flows.find(drawn.id).counts)
    assert ["", "p", "p", "p", ""] == [one.name for one in built.flows.members(drawn.id)]


def test_a_waiting_job_of_a_flow_may_be_cancelled(built):
    drawn = begun(built, CHAIN)
    [waiting] = built.queue.walk("default", ["ready"]).page(10)
    row = LeaseRow(waiting.place, waiting.attempts) if waiting.attempts is not None else None
    lease = Lease("default", waiting.payload, 0, row)
    ending = Ending(member=MemberEnd(drawn.id, "0", "f"))

    assert built.queue.cancel(lease, "a", record(lease), ending)
    assert FlowEnd(drawn.id, "drawn", "failed") == built.flows.last_end
    assert not built.queue.cancel(lease, "a", record(lease), ending)


def test_what_else_follows_from_the_end_of_a_job_follows_from_a_members(built):
    drawn = begun(built, CHAIN)
    [lease] = taken(built.queue).values()
    state_record = StateRecord("a", b'{"state": "done"}', 60.0)
    ending = Ending(None, (Unlock("lock", "owner"),), state_record, drawn.end("a", "d"))

    assert built.queue.finish(lease, ending)
    assert b'{"state": "done"}' == built.values.state("a")


def test_what_follows_a_member_that_is_held_is_told_though_another_starts(built):
    begun(built, {"x": [], "p": [], "held": ["p"], "also?a": ["p"], "end?a": ["held"]})
    leases = taken(built.queue)
    assert ended(built.queue, leases["x"], "f")
    assert ended(built.queue, leases["p"])

    assert {"also?a", "end?a"} == set(taken(built.queue))


@pytest.mark.thorough("smaller flows take the same steps but for the pieces, which test_flows_in_redis.py has")
def test_a_thousand_members_start_and_their_callback_does(built):
    graph = {"first": [], **{f"m{number}": ["first"] for number in range(1200)}}
    drawn = begun(built, graph | {"merge": [name for name in graph if name != "first"]})
    [lease] = taken(built.queue).values()
    ended(built.queue, lease)
    found = taken(built.queue, 2000)

    assert 1200 == len(found)
    for one in found.values():
        assert ended(built.queue, one)
    assert ["merge"] == run_all(built)
    assert "done" == state(built, drawn)


@pytest.mark.thorough("as above")
def test_a_large_cancelled_flow_still_tells_those_that_follow_its_end(built):
    graph = {"first": [], **{f"m{number}": ["first"] for number in range(1200)}}
    drawn = begun(built, graph | {"end?a": [name for name in graph if name != "first"]})

    assert ["first", "end?a"] == run_all(built, {"first": "f"})
    assert 1200 == built.flows.find(drawn.id).counts.cancelled


def test_flows_are_listed_latest_first(built, at):
    ids = []
    for _ in range(3):
        ids.append(begun(built, CHAIN).id)
        at.advance(1)

    assert ids[::-1] == [one.id for one in built.flows.page()]
    [latest] = built.flows.page(count=1)
    assert ids[1::-1] == [one.id for one in built.flows.page(latest.place)]


def test_of_flows_of_one_moment_a_list_leaves_out_none(built):
    ids = {begun(built, CHAIN).id for _ in range(5)}
    found, place = [], None
    while page := list(built.flows.page(place, count=2)):
        found += [one.id for one in page]
        place = page[-1].place

    assert (5, ids) == (len(found), {*found})


def test_flows_are_listed_by_state_and_name(built, at):
    album, failed = begun(built, CHAIN), begun(built, {"x": []})
    for name, lease in taken(built.queue).items():
        ended(built.queue, lease, "f" if name == "x" else "d")

    def listed(**wanted):
        return {one.id for one in built.flows.page(wanted=FlowFilter(**wanted))}

    assert {album.id, failed.id} == listed(name="dr*") == listed(name="drawn") == listed()
    assert set() == listed(name="dr") == listed(name="Drawn") == listed(state="done")
    assert ({failed.id}, {album.id}) == (listed(state="failed"), listed(state="running"))


@pytest.mark.by_turns("wanted")
@pytest.mark.parametrize("wanted", ["50%_", "50%_*", "50%*", "5*"])
def test_what_means_something_to_a_database_means_itself_in_a_filter_by_name(built, wanted):
    drawn, other = Drawn(CHAIN), Drawn(CHAIN)
    built.flows.write(drawn.flow._replace(name="50%_"), drawn.members)
    built.flows.write(other.flow._replace(name="50 or more" if wanted != "5*" else "Five"), other.members)

    assert [drawn.id] == [one.id for one in built.flows.page(wanted=FlowFilter(name=wanted))]
    assert [] == list(built.flows.page(wanted=FlowFilter(name="50%_\0\ud800")))


def test_edges_are_shown(built):
    drawn = begun(built, {"a": [], "b": ["a"], "end?a": ["a", "b"]})
    shown = {one.number: one.edges for one in built.flows.members(drawn.id)}

    assert {"0": ("1s", "2a"), "1": ("2a",), "2": ()} == shown


def test_those_under_way_are_known_by_how_far_they_are(built):
    drawn = begun(built, {"a": [], "b": ["a"], "alarm?f": ["a"], "c": ["b"]})
    begun(built, {"x": []})
    built.flows.add(Drawn(CHAIN).flow, [])
    [one] = [one for one in built.flows.under_way() if one.id == drawn.id]
    assert ("drawn", 3, 1, 4) == (one.name, *one.progress)
    assert 1 == len(built.flows.under_way(1))
    assert abs(one.created - built.flows.find(drawn.id).created) < 0.001

    run_all(built)
    assert [] == built.flows.under_way()
