"""Middleware of single jobs, in each kind of worker: what it sees, changes and leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from queuepool import chain
from queuepool.jobs.composing import flow_of
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.middlewareapp import plain
from tests.support.pools import Site

APP = ("--modules", "tests.support.middlewareapp")
#: what an attempt at a plain job of each order notes; those of the other kinds have no hook
NOTED = {
    "one": ["outer", "ran", "outer left", "succeeded"],
    "key": ["outer", "ran", "outer caught"],
    "os": ["outer", "ran", "caught", "outer left", "succeeded"],
    "paid": [],
    "skip": ["outer", "outer left"],
    "never": ["outer", "outer left"],
    "later": [*["outer", "put off", "outer left"] * 2, "outer", "ran", "outer left", "succeeded"],
}
FAILED = {"key": "ValueError: translated", "never": "the gate is closed"}


@pytest.mark.by_turns("flags")
@pytest.mark.parametrize("flags", [(), ("--concurrency", "4")], ids=["alone", "side by side"])
def test_it_sees_changes_and_leaves_out_what_its_own_job_does(site, flags):
    names = ("plain", "async", "class")
    pushed = {site.queue.push(name, {"order": order}): order for name in names for order in NOTED}
    with site.pool(*APP, "--workers", "1", "--tries", "1", *flags) as pool:
        eventually(lambda: 2 * len(names) == pool.log().count("job skipped"))
        eventually(lambda: len(names) == noted(site, event="put off").count("put off") / 2)
        eventually(lambda: 0 == site.queue.size())

    for name in names:
        assert NOTED == {order: [*of_plain(noted(site, name=name, order=order), name)] for order in NOTED}
    failed = [(pushed[row.id], row.exception) for row in site.queue.stores.failed.page(count=len(pushed))]
    assert sorted([*FAILED] * len(names)) == sorted(order for order, _ in failed)
    assert [] == [order for order, text in failed if FAILED[order] not in text]
    assert {1} == {line["attempt"] for line in site.trail()}


def noted(site: Site, **wanted: Any) -> list[str]:
    return [line["event"] for line in site.trail(**wanted)]


def of_plain(events: list[str], name: str) -> list[str]:
    """The events as they would be of a plain job."""
    if name == "async":  # what its own middleware notes comes inside of the outer one
        assert events.count("aouter") == events.count("aouter left") == events.count("outer")
        assert events.count("sees aouter") == events.count("ran")
    own = [event for event in events if "aouter" not in event]
    return [*own, "succeeded"] if name != "plain" and own[-1:] == ["outer left"] and "ran" in own else own


@pytest.mark.by_turns("flags")
@pytest.mark.parametrize("flags", [(), ("--concurrency", "4")], ids=["alone", "side by side"])
def test_what_follows_a_skipped_member_of_a_flow_starts(site, flags):
    flow = flow_of(chain(plain.call("paid"), plain.call("skip"), plain.call)).push_to(site.queue)
    with site.pool(*APP, "--workers", "1", *flags):
        assert "done" == flow.wait(60).state

    assert [None] == [line["order"] for line in site.trail(event="ran")]


def test_a_skipped_job_is_shown_as_such(site):
    job = site.queue.push("plain", {"order": "paid"}, track=60)
    with site.pool(*APP, "--workers", "1", "--keep-done", "1h") as pool:
        eventually(lambda: 0 == site.queue.size())
        shown = site.run("job", "--json", job, *site.where, check=False).stdout

    assert "reason=it is paid" in pool.log().replace("'", "").replace('"', "")
    assert "skipped" in json.dumps(json.loads(shown))


@pytest.mark.every_store("kind")
@pytest.mark.parametrize("kind", ["redis", "sqlite"])
def test_a_job_that_puts_itself_off_keeps_its_steps_and_the_records_of_its_attempts(request, kind):
    with site_on(kind, request) as site:
        job = site.queue.push("puts itself off", track=60)
        with site.pool(*APP, "--workers", "1", "--keep-done", "1h"):
            eventually(lambda: 0 == site.queue.size())
        shown = json.loads(site.run("job", "--json", job, *site.where, check=False).stdout)

    assert [(5, 1)] * 3 == [(line["got"], line["attempt"]) for line in site.trail(event="ran")]
    assert 1 == len(site.trail(event="step"))
    assert ["released", "released", "done"] == [one["outcome"] for one in shown["ended"]]
