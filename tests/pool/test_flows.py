"""Flows in real pools: whatever is killed meanwhile, each member starts after those that it follows, and is counted
once.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from queuepool import Flow, chain, group, result, results
from queuepool.jobs.composing import flow_of
from queuepool.jobs.flows import encoded
from queuepool.jobs.following_flows import FlowId
from queuepool.payload.members import FLOW, NewFlow, NewMember
from tests.support.drivers import DATABASES, site_on
from tests.support.eventually import eventually
from tests.support.flowapp import astep, fails, idle, large, late, merge, split, step, takes
from tests.support.pools import RunningPool, Site

APP = ("--modules", "tests.support.flowapp")
pytestmark = pytest.mark.every_store("place")


@pytest.fixture(params=["redis", *DATABASES])
def place(request: pytest.FixtureRequest) -> Iterator[Site]:
    with site_on(request.param, request) as found:
        yield found


def names(site: Site, what: str) -> list[str]:
    return [line["name"] for line in site.trail(what=what)]


def kill_one(pool: RunningPool, chance: random.Random) -> None:
    if workers := pool.workers():
        with suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)


@pytest.mark.by_turns("more")
@pytest.mark.parametrize("more", [(), ("--concurrency", "4")], ids=["one by one", "side by side"])
def test_a_chain_and_a_group_run_to_their_ends(place, more):
    steps = flow_of(chain(*(step.call(f"c{number}") for number in range(5)))).push_to(place.queue)
    calls = [(astep if number % 2 else step).call(f"g{number}") for number in range(20)]
    page = flow_of(group(calls, then=merge.call), name="page").push_to(place.queue)
    with place.pool("--workers", "2", *more, *APP):
        assert "done" == steps.wait(60).state
        assert "done" == page.wait(60).state

    assert [f"c{number}" for number in range(5)] == [name for name in names(place, "ends") if name[0] == "c"]
    [merged] = place.trail(what="merges")
    assert [f"G{number}" for number in range(20)] == merged["names"]
    assert "21 of 21 done" == page.flow().progress


@pytest.mark.thorough("every run kills workers beside limits, flows and steps in a chaos run")
def test_the_callback_runs_once_while_workers_are_killed(place):
    chance = random.Random(7)
    flow = Flow("killed")
    photos = [flow.add(step.call(f"g{number}", 0.1)) for number in range(20)]
    flow.add(merge.call(results(photos)))
    last = None
    for number in range(5):
        last = flow.add(step.call(f"c{number}", 0.1), after=last)
    found = flow.push_to(place.queue)
    with place.pool("--workers", "3", "--max-crashes", "0", *APP) as pool:
        for ended in range(1, 25):  # a kill for each that has ended, so that enough of them run between
            eventually(lambda ended=ended: len(names(place, "ends")) >= ended or found.flow().is_over)
            kill_one(pool, chance)
        assert "done" == found.wait(60).state

    merged = place.trail(what="merges")
    assert 1 == len({line["job"] for line in merged})  # pushed once; it may be killed, too, and run again
    assert [[f"G{number}" for number in range(20)]] * len(merged) == [line["names"] for line in merged]
    begun = [name for name in names(place, "begins") if name[0] == "c"]
    assert begun == sorted(begun)
    assert set(Counter(names(place, "begins"))) == {f"g{n}" for n in range(20)} | {f"c{n}" for n in range(5)}


@pytest.mark.thorough("the contract of flows has it on each store")
def test_a_failure_starts_what_follows_failures_and_nothing_else(place):
    flow = Flow("fails", on_failure=step.call("told"))
    bad = flow.add(fails.call())
    flow.add(step.call("never"), after=bad)
    flow.add(step.call("alarm"), after=bad, on="failure")
    flow.add(step.call("finally"), after=bad, on="any")
    found = flow.push_to(place.queue)
    with place.pool("--workers", "2", *APP) as pool:
        assert "failed" == found.wait(60).state
        eventually(lambda: "told" in names(place, "ends"))

    assert f"flow failed id={found}" in pool.log()
    assert ["alarm", "finally", "told"] == sorted(names(place, "ends"))
    assert "2 of 4 done, 1 failed, 1 cancelled" == found.flow().progress


@pytest.mark.thorough("stores/test_looks_after_flows.py counts the ends, metrics/test_exposition.py shows counts")
def test_a_pool_tells_how_its_flows_have_ended_and_which_are_under_way(place):
    bad, good, waits = Flow(), Flow(), Flow("waits")
    bad.add(fails.call())
    good.add(step.call("a"))
    waits.add(step.call("b"), after=waits.add(step.using(delay=3600).call("later")))
    found = [one.push_to(place.queue) for one in (waits, bad, good)]
    with place.pool("--workers", "1", *APP) as pool:
        assert ["failed", "done"] == [one.wait(60).state for one in found[1:]]
        where = ("--runtime-dir", pool.runtime, *place.where)
        wanted = (
            'queuepool_flows{pool="default",connection="default"} 1\n',
            'queuepool_flow_members_waiting{pool="default",connection="default"} 1\n',
            'queuepool_flows_ended_total{pool="default",state="done"} 1\n',
            'queuepool_flows_ended_total{pool="default",state="failed"} 1\n',
        )
        eventually(lambda: all(line in place.run("metrics", *where).stdout for line in wanted), 60)


def test_a_retry_resumes_a_flow(place, tmp_path):
    gate = tmp_path / "gate"
    found = flow_of(chain(step.call("a"), fails.call(str(gate)), step.call("b"))).push_to(place.queue)
    with place.pool("--workers", "1", *APP):
        assert "failed" == found.wait(60).state
        gate.touch()
        assert "1 job put back" in place.run("retry", *place.where, "--force", "all").stdout
        eventually(lambda: "done" == found.flow().state)

    assert ["a", "b"] == names(place, "ends")


def test_queued_members_of_a_cancelled_flow_are_left_out(place):
    flow = Flow("cancelled")
    for number in range(30):
        flow.add(step.call(f"s{number}", 0.2))
    found = flow.push_to(place.queue)
    with place.pool("--workers", "1", *APP):
        eventually(lambda: names(place, "begins"))
        assert place.queue.cancel_flow(found)
        assert "cancelled" == found.wait(60).state

    assert len(names(place, "begins")) < 30
    assert len(names(place, "begins")) == found.flow().counts.done


def test_members_that_a_dead_producer_has_left_are_pushed_within_seconds(request):
    with site_on("redis", request) as place:
        with place.pool("--workers", "1", *APP):
            place.queue.push("flow.step", {"name": "plain"})
            eventually(lambda: names(place, "ends"))  # its steward has looked for the first time
            found = half_begun(place, 4)
            eventually(lambda: "done" == found.flow().state, 20)

        assert ["plain", "s0", "s1", "s2", "s3"] == names(place, "ends")


def half_begun(place: Site, members: int) -> FlowId:
    """A flow whose producer dies after the first write that pushes some of its members."""
    flow = NewFlow("A" * 22, "half", members, members, stops=True, deadline=3600.0, keep=3600.0)
    calls = [encoded(place.queue, step.call(f"s{n}"), {FLOW: f"{flow.id}:{n}"})[1] for n in range(members)]
    flows = place.queue.stores.flows
    flows.add(flow, [NewMember(str(n), "s", "default", 0.0, payload) for n, payload in enumerate(calls)])
    flows._text("start_flow", flow.id, 2)
    return FlowId(flow.id, place.queue)


def test_what_a_job_adds_is_written_once_with_its_end(place, tmp_path):
    flow = Flow("split")
    parts = flow.add(split.call(3, gate="kill"))
    flow.add(step.call("after"), after=parts)
    found = flow.push_to(place.queue)
    with place.pool("--workers", "2", *APP):
        assert "done" == found.wait(60).state

    assert 2 == len(place.trail(what="splits"))
    assert ["after", "part 0", "part 1", "part 2"] == sorted(names(place, "ends"))
    assert "after" == names(place, "ends")[-1]


def test_a_result_that_cannot_be_kept_fails_its_job(place):
    flow = Flow("large")
    text = flow.add(large.call())
    flow.add(takes.call(result(text)))
    found = flow.push_to(place.queue)
    with place.pool("--workers", "1", *APP):
        assert "failed" == found.wait(60).state

    [failed] = place.queue.stores.failed.page()
    assert "cannot be kept: 70002 bytes of JSON" in failed.exception
    assert [] == place.trail(what="takes")


@pytest.mark.every_store("kind")
@pytest.mark.parametrize("kind", DATABASES)
def test_a_member_fails_where_there_are_no_tables_for_flows(kind, request):
    with site_on(kind, request) as place:
        client = place.queue.stores._own
        client.transaction(lambda made: made.exec_driver_sql("drop table queuepool_members"))
        client.transaction(lambda made: made.exec_driver_sql("drop table queuepool_flows"))
        place.queue.push_raw(encoded(place.queue, step.call("member"), {FLOW: f"{'A' * 22}:0"})[1])
        place.queue.push("flow.step", {"name": "plain"})
        with place.pool("--workers", "1", "--unknown-retry", "0", *APP):
            eventually(lambda: names(place, "ends"))

        assert ["plain"] == names(place, "ends")
        [failed] = place.queue.stores.failed.page()
        assert "queuepool_flows" in failed.exception


@pytest.mark.thorough("a job that dies after it has added to its flow is the test above")
def test_what_a_hook_adds_is_kept_if_its_worker_dies_before_the_end(place):
    flow = Flow("hook")
    flow.add(step.call("after"), after=flow.add(idle.call()))
    found = flow.push_to(place.queue)
    with place.pool("--workers", "1", "--modules", "tests.support.flowhooks"):
        assert "done" == found.wait(60).state

    assert ["added", "after"] == names(place, "ends")


@pytest.mark.thorough("a job that dies after it has added to its flow is the test above")
def test_a_skipped_member_whose_worker_dies_before_its_end_does_not_count_as_done(place):
    flow = Flow("skipped")
    flow.add(step.call("after"), after=flow.add(late.call()))
    found = flow.push_to(place.queue)
    begin = time.time() + 1
    eventually(lambda: time.time() > begin)
    with place.pool("--workers", "1", "--modules", "tests.support.flowhooks"):
        found.wait(60)

    assert 1 == len(place.trail(what="late"))  # what has begun once does not expire
    assert ["after"] == names(place, "ends")


def test_what_follows_a_done_member_does_not_wait_for_a_slow_job_that_its_worker_holds(place):
    flow = Flow("held")
    flow.add(step.call("after"), after=flow.add(step.call("quick")))
    flow.push_to(place.queue)
    gate = place.path / "gate"
    place.queue.push("flow.step", {"name": "slow", "gate": str(gate)})
    with place.pool("--workers", "2", "--reserve-ahead", "4", *APP):
        eventually(lambda: "after" in names(place, "ends"))
        gate.touch()
        eventually(lambda: "slow" in names(place, "ends"))

    assert ["quick", "after", "slow"] == names(place, "ends")


def test_a_done_member_whose_worker_dies_in_its_next_job_is_settled_and_not_run_again(place):
    flow = Flow("dies")
    flow.add(step.call("after"), after=flow.add(step.call("quick")))
    found = flow.push_to(place.queue)
    place.queue.push("flow.dies", {})
    with place.pool("--workers", "1", "--reserve-ahead", "4", *APP):
        assert "done" == found.wait(60).state
        eventually(lambda: 2 == len(place.trail(what="dies")))

    assert ["quick", "after"] == names(place, "begins")


def test_a_broken_flow_holds_up_no_other_jobs(request):
    with site_on("redis", request) as site:
        flow = Flow("broken")
        flow.add(step.call("after"), after=flow.add(step.call("member")))
        found = flow.push_to(site.queue)
        letters = f"{site.queue.stores.queue.keys.flow(str(found))}:letters"
        site.queue.stores.client.command("DEL", letters)
        site.queue.stores.client.command("SET", letters, "of another program")
        for number in range(3):
            site.queue.push("flow.step", {"name": f"other {number}"})
        with site.pool("--workers", "1", *APP) as pool:
            eventually(lambda: 4 == len(names(site, "ends")))
            eventually(lambda: 2 <= pool.log().count("WRONGTYPE"))  # the reserve, and the end of the member alone
            site.queue.push("flow.step", {"name": "later"})
            eventually(lambda: "later" in names(site, "ends"))


@pytest.mark.thorough("stores hold up nothing for a broken key in the contract; this is a whole pool")
def test_a_broken_queue_holds_up_only_the_members_that_go_there(request):
    with site_on("redis", request) as site:
        flow, client = Flow("broken"), site.queue.stores.client
        for number in range(10):
            flow.add(
                (step.using(queue="bad") if number == 9 else step).call(f"f{number}"), after=flow.add(step.call("m"))
            )
        client.command("SET", site.queue.stores.queue.keys.ready("bad"), "of another program")
        found = flow.push_to(site.queue)
        with site.pool("--workers", "1", "--reserve-ahead", "16", *APP) as pool:
            eventually(lambda: 19 == len(names(site, "ends")))
            eventually(lambda: "WRONGTYPE" in pool.log())
            client.command("DEL", site.queue.stores.queue.keys.ready("bad"))
            eventually(lambda: 1 == site.queue.stores.queue.sizes("bad").ready)
        assert "19 of 20 done" == found.flow().progress
