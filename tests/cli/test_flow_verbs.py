"""``queuepool flow``: flows are listed, shown as graphs, cancelled and resumed."""

from __future__ import annotations

import json

import pytest

from queuepool import Flow
from queuepool.jobs.following_flows import FlowId
from queuepool.payload.lease import Ending
from tests.support.flowapp import fails, step
from tests.support.graphs import ended, taken
from tests.support.pools import Site
from tests.support.samples import record


@pytest.fixture
def failed(site: Site) -> FlowId:
    """A flow whose second job has failed."""
    flow = Flow("album")
    first = flow.add(step.call("a"))
    second = flow.add(fails.call(), after=first)
    flow.add(step.call("b"), after=second)
    flow.add(step.call("c"), after=second, on="any")
    found = flow.push_to(site.queue)
    for how in ("d", "f", "d"):
        [lease] = taken(site.queue.stores.queue).values()
        assert ended(site.queue.stores.queue, lease, how)
    return found


def said(site: Site, *words: str, code: int = 0) -> str:
    done = site.run("flow", *words, *site.where, check=False)
    assert code == done.returncode, done.stderr
    return done.stdout + done.stderr


def test_a_flow_is_listed_with_its_progress(site, failed):
    [row] = [line for line in said(site, "list").splitlines() if failed in line]
    [facts] = json.loads(said(site, "list", "--json"))

    assert ["album", "failed"] == row.split()[1:3]
    assert "2 of 4 done, 1 failed, 1 cancelled" in row
    assert (failed, "2 of 4 done, 1 failed, 1 cancelled") == (facts["id"], facts["progress"])


def test_flows_are_listed_by_state_and_name(site, failed):
    flow = Flow("import")
    flow.add(step.call("a"))
    running = flow.push_to(site.queue)

    def listed(*flags: str) -> list[str]:
        return [row["id"] for row in json.loads(said(site, "list", "--json", *flags))]

    assert [running, failed] == listed()
    assert [failed] == listed("--state", "failed") == listed("--name", "alb*")
    assert [] == listed("--state", "running", "--name", "album")
    assert "'asleep' is not one of" in said(site, "list", "--state", "asleep", code=2)


def test_a_retry_finds_a_failed_job_whose_end_was_never_reported(site):
    flow = Flow("album")
    flow.add(step.call("a"))
    found, stores = flow.push_to(site.queue), site.queue.stores
    [(job, lease)] = taken(stores.queue).items()
    stores.queue.fail(lease, job, record(lease, job), Ending())
    assert 1 == found.flow().counts.running

    assert "1 job put back" in said(site, "retry", found)
    assert ([job], 0) == (list(taken(stores.queue)), stores.failed.count())


def test_a_flow_is_shown_as_a_graph(site, failed):
    lines = said(site, "show", failed).splitlines()

    assert "progress: 2 of 4 done, 1 failed, 1 cancelled" in lines
    assert [
        "0  done       flow.step  -> 1",
        "1  failed     flow.fails  -> 2, 3 in any case",
        "2  cancelled  flow.step",
        "3  done       flow.step",
    ] == lines[-4:]


@pytest.mark.by_turns("words")
@pytest.mark.parametrize("words", [("flow", "retry"), ("retry",)], ids=" ".join)
def test_a_flow_is_resumed(site, failed, words):
    [record] = site.queue.stores.failed.page()
    which = failed if words[0] == "flow" else record.id
    done = site.run(*words, which, *site.where)

    assert "1 job put back" in done.stdout
    assert "running" == failed.flow().state
    for name in ("flow.fails", "flow.step"):
        [lease] = taken(site.queue.stores.queue).values()
        assert name == json.loads(lease.receipt)["job"]
        assert ended(site.queue.stores.queue, lease)
    assert "done" == failed.flow().state


def test_what_runs_of_a_cancelled_flow_is_still_to_end(site):
    flow = Flow("album")
    flow.add(step.call("b"), after=flow.add(step.call("a")))
    found = flow.push_to(site.queue)

    assert f"flow {found}: cancelled" in said(site, "cancel", found)
    assert "state: cancelled, 1 still to end" in said(site, "show", found)
    [lease] = taken(site.queue.stores.queue).values()
    ended(site.queue.stores.queue, lease)
    assert "is over: cancelled" in said(site, "cancel", found, code=1)


@pytest.mark.by_turns("verb")
@pytest.mark.parametrize("verb", ["show", "cancel", "retry"])
def test_there_is_no_such_flow(site, verb):
    assert "there is no flow nobody" in said(site, verb, "nobody", code=1)


@pytest.mark.by_turns("by")
@pytest.mark.parametrize("by", ["id", "all"])
def test_a_job_whose_flow_is_gone_is_retried_only_alone(site, failed, by):
    [record] = site.queue.stores.failed.page()
    flows, queue = site.queue.stores.flows, site.queue.stores.queue
    flows._client.command("DEL", *flows._keys.of_flow(failed)[0][:6])
    which = record.id if by == "id" else "all"
    words = "its flow is" if by == "id" else "1 failed job left: their flows are"

    refused = site.run("retry", which, *site.where, check=False)
    assert (1, 1) == (refused.returncode, site.queue.stores.failed.count())
    assert f"{words} not kept any more; " in refused.stderr
    assert "0 jobs put back" in refused.stdout

    assert "1 job put back" in site.run("retry", which, "--alone", *site.where).stdout
    [lease] = taken(queue).values()
    assert ended(queue, lease)
    assert ({}, None) == (taken(queue), flows.standing(failed))


def test_a_flow_without_failed_jobs_is_not_resumed(site):
    flow = Flow()
    flow.add(step.call("a"))

    assert "none of its failed jobs could be put back; it is running" in said(
        site, "retry", flow.push_to(site.queue), code=1
    )
