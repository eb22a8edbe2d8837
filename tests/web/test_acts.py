"""What the dashboard does: as the commands do it, once, and with who did it in the journal."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from queuepool.errors import StoreDown
from queuepool.web.errands import ErrandPlan, Errands
from queuepool.web.guard import Refusal
from queuepool.web.visitors import Visitor, WebRole
from tests.support.dashboards import Browser
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands, failed_now
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("at")


def journal(site: Site) -> list[tuple[str, str, int | None]]:
    return [(line.verb, line.subject, line.count) for line in site.queue.stores.journal.last(20)]


def failed(site: Site) -> set[str]:
    return {record.id for record in site.queue.stores.failed.page()}


def told(browser: Browser, path: str, form: dict[str, object] | None = None) -> str:
    """The outcome that the page after an action shows, at its end."""
    after = browser.post(path, form)
    assert after.status == 303, after.text
    page = after.headers["location"]
    if errand := re.match(r"/errands/(\w+)", page):
        return html.escape(browser.ended(errand[1])["words"])
    found = re.search(r'role="status".*?<(?:p|pre)[^>]*>(.*?)</(?:p|pre)>', browser.get(page).text, re.DOTALL)
    assert found
    return found[1]


def test_a_queue_is_paused_on_all_hosts_until_it_continues(at, browser):
    path = "/queues/default/default"

    assert "queue default is paused on all hosts" == told(browser, f"{path}/pause")
    assert {"default"} == at.queue.stores.control.read(["default"]).paused
    assert "eve@" in at.queue.stores.control.read(["default"]).pauses["default"][1]
    assert "Continue on all hosts" in browser.get(path).text
    again = told(browser, f"{path}/pause")
    assert re.match(r"queue default was paused already \(since <time datetime=.*? UTC</time> by eve@", again)
    assert "queue default continues" == told(browser, f"{path}/continue")
    assert "queue default was not paused" == told(browser, f"{path}/continue")
    assert [("pause", "queue default", None), ("continue", "queue default", None)] == journal(at)
    assert {"eve"} == {line.by.partition("@")[0] for line in at.queue.stores.journal.last(9)}


def test_chosen_failed_jobs_are_put_back_or_dropped(at, browser):
    first, second, *_ = ids = failed_in_thousands(at.queue, 4)

    assert "1 job put back on connection default: default 1" == told(browser, "/failed/retry", {"id": first})
    assert "2 jobs dropped on connection default: default 2" == told(
        browser, "/failed/forget", {"id": [second, ids[2]]}
    )
    assert ({ids[3]}, 1) == (failed(at), at.queue.size("default"))
    lines = [
        ("retry", "jobs on connection default: default 1", 1),
        ("forget", "jobs on connection default: default 2", 2),
    ]
    assert lines == journal(at)
    assert "0 jobs put back on connection default" == told(browser, "/failed/retry", {"id": first})
    assert 2 == len(journal(at))


@pytest.mark.bad_input("B186")
def test_all_that_fit_are_counted_first_and_nothing_that_fails_after_that_is_touched(at, browser):
    failed_in_thousands(at.queue, 130)
    wanted = {"error": "KeyError"}
    facts = browser.facts(f"/failed/confirm?{urlencode({'act': 'retry', **wanted})}")
    assert (65, True, [{"queue": "default", "jobs": 65}]) == (facts["count"], facts["is_whole"], facts["queues"])
    page = browser.get(f"/failed/confirm?{urlencode({'act': 'forget', **wanted})}").text
    assert "Drop 65 failed jobs?" in page
    assert "Error <strong>KeyError</strong>" in page
    late = failed_now(at.queue, "KeyError: 'customer'")

    for form in ({}, wanted, {**wanted, "count": 65, "before": facts["until"]}):
        assert 400 == browser.post("/failed/retry", form).status
    done = told(browser, "/failed/retry", {"agreed": facts["agreed"], "to": "second", "unserved": "yes"})
    assert done.startswith("65 jobs put back on queue second")
    assert (65, 66, True) == (at.queue.size("second"), len(failed(at)), late in failed(at))


@pytest.mark.bad_input("B186")
def test_more_than_a_hundred_need_their_number(at, browser):
    failed_in_thousands(at.queue, 101)
    path = "/failed/confirm?act=forget&error=Error"
    form = {"agreed": browser.facts(path)["agreed"]}

    assert "type their number" in browser.get(path).text
    assert 409 == browser.post("/failed/forget", form).status
    assert 409 == browser.post("/failed/forget", {**form, "typed": 100}).status
    assert 101 == len(failed(at))
    assert told(browser, "/failed/forget", {**form, "typed": 101}).startswith("101 jobs dropped")
    assert set() == failed(at)


@pytest.mark.bad_input("B186")
def test_what_another_operator_has_dealt_with_meanwhile_is_told(at, browser):
    [job] = failed_in_thousands(at.queue, 1)
    agreed = browser.facts("/failed/confirm?act=retry&name=do")["agreed"]
    assert told(browser, "/failed/forget", {"id": job}).startswith("1 job dropped")

    assert told(browser, "/failed/retry", {"agreed": agreed}).startswith("0 jobs put back")
    assert 0 == at.queue.size("default")


def test_a_job_that_waits_is_cancelled_and_recorded(at, browser):
    job = at.push()

    assert f"job {job} (do) was taken out of queue default; it is recorded as failed" in told(
        browser, f"/jobs/{job}/cancel"
    )
    assert ({job}, 0) == (failed(at), at.queue.size("default"))
    assert [("cancel", f"job {job}", 1)] == journal(at)
    again = browser.send(f"/api/v1/jobs/{job}/cancel", {})
    assert (409, "over") == (again.status, again.json["outcome"])


def test_waiting_jobs_that_fit_are_moved_or_dropped_and_no_more_than_were_agreed_to(at, browser):
    pushed = [at.push(customer=number % 2) for number in range(6)]
    path, fit = "/queues/default/default", {"where": "customer=1", "state": "ready"}
    facts = browser.facts(f"{path}/confirm?{urlencode({'act': 'drop', **fit})}")
    assert (3, "ready") == (facts["count"], facts["state"])
    assert (
        "Drop 3 ready jobs of queue default?" in browser.get(f"{path}/confirm?{urlencode({'act': 'drop', **fit})}").text
    )
    late, form = at.push(customer=1), {"state": "ready", "agreed": facts["agreed"]}

    assert 400 == browser.post(f"{path}/drop", {**fit, "count": 3}).status
    assert 400 == browser.post(f"{path}/move", form).status
    assert 400 == browser.post(f"{path}/drop", {**form, "state": "reserved"}).status
    assert 409 == browser.post(f"{path}/drop", {**form, "state": "delayed"}).status
    assert 409 == browser.post(f"{path}/move", {**form, "to": "other", "unserved": "yes"}).status
    assert told(browser, f"{path}/drop", form).startswith("3 jobs dropped on connection default: default 3")
    moving = {"state": "ready", "agreed": browser.facts(f"{path}/confirm?act=move")["agreed"]}
    assert told(browser, f"{path}/move", {**moving, "to": "other", "unserved": "yes"}).startswith(
        "4 jobs moved to other"
    )
    assert (0, 4) == (at.queue.size("default"), at.queue.size("other"))
    moved = [job["id"] for job in browser.facts("/queues/default/other")["jobs"]]
    assert [*pushed[::2], late] == moved
    assert ["drop", "move"] == [verb for verb, _, _ in journal(at)]


def test_programs_act_by_json(at, browser):
    ids = failed_in_thousands(at.queue, 2)
    got = browser.send("/api/v1/failed/retry", {"id": ids})

    ended = browser.ended(got.json["id"])
    assert (200, "done", 2) == (got.status, ended["state"], ended["done"])
    assert 2 == at.queue.size("default")
    assert 200 == browser.send("/api/v1/queues/default/default/pause", {}).status


class Held:
    """Errands whose pages come when the test lets them."""

    def __init__(self) -> None:
        self.errands = Errands()
        self.notes: list[tuple[str, str, int | None]] = []
        self.gate = threading.Event()

    def pages(self) -> Iterator[list[Any]]:
        yield []
        self.gate.wait(20)
        yield []

    def plan(self, connection: str = "default", back: str = "/failed", **about: Any) -> ErrandPlan:
        plan = ErrandPlan("retry", "put back", connection, 2, back, lambda *line: self.notes.append(line) or "")
        return replace(plan, **about)


@pytest.mark.bad_input("B186")
def test_the_same_is_not_done_twice_at_once_and_can_be_stopped():
    held, eve = Held(), Visitor("eve", WebRole.ADMIN)
    first = held.errands.begin(held.plan(), eve, held.pages(), lambda jobs: [])

    assert "running" == first.state
    with pytest.raises(Refusal, match="the same is under way"):
        held.errands.begin(held.plan(), eve, [], lambda jobs: [])
    others = [held.errands.begin(held.plan(f"c{number}"), eve, held.pages(), lambda jobs: []) for number in range(3)]
    with pytest.raises(Refusal, match="4 such actions are under way"):
        held.errands.begin(held.plan("c9"), eve, [], lambda jobs: [])
    for one in (first, *others):
        held.errands.get(one.id).stop()
    held.gate.set()
    eventually(lambda: [one.state for one in (first, *others)] == ["stopped"] * 4)
    assert [] == held.notes


def test_what_others_do_meanwhile_with_other_jobs_is_no_hindrance():
    held, eve = Held(), Visitor("eve", WebRole.ADMIN)
    running = [
        held.errands.begin(held.plan(back=f"/failed?queue={queue}"), eve, held.pages(), idle) for queue in "abcd"
    ]

    assert "done" == held.errands.begin(held.plan(back="/failed?queue=a", is_chosen=True), eve, [], idle).state
    for _ in range(120):
        held.errands.begin(held.plan(is_chosen=True), eve, [], idle)
    assert {"running"} == {held.errands.get(one.id).state for one in running}, "which can be stopped still"
    held.errands.close()
    held.gate.set()
    eventually(lambda: not held.errands.are_under_way())


def test_what_may_be_cut_off_has_its_line_as_soon_as_it_begins():
    held, eve = Held(), Visitor("eve", WebRole.ADMIN)
    held.errands.begin(held.plan(total=500), eve, [], idle)
    assert [] == held.notes
    errand = held.errands.begin(held.plan(total=501), eve, held.pages(), idle)
    assert [("retry", "begun, at most 501 jobs on connection default", None)] == held.notes
    errand.stop()
    held.gate.set()


@pytest.mark.bad_input("B186")
def test_a_store_that_goes_away_in_the_middle_ends_it_and_it_says_how_far_it_came():
    def pages():
        yield []
        raise StoreDown("connection refused")

    held = Held()
    errand = held.errands.begin(held.plan(), Visitor("eve", WebRole.ADMIN), pages(), lambda jobs: [])

    eventually(errand.over.is_set)
    assert "failed" == errand.state
    assert errand.words.startswith("not finished: connection refused, and perhaps some of the batch under way")


def idle(jobs):
    return []


def test_delayed_jobs_are_run_now_alone_or_all_that_fit(at, browser):
    first, second, third = (at.push(delay=3600, customer=number) for number in range(3))
    ready = at.push()
    path = "/queues/default/default"

    assert 'name="id" value="' + first in browser.get(f"/jobs/{first}").text
    words = "1 job made due now on connection default: default 1"
    assert words == told(browser, f"{path}/run", {"state": "delayed", "id": first})
    at.work()
    assert {first, ready} == {note["id"] for note in at.trail(event="start")}
    assert 400 == browser.post(f"{path}/run", {"state": "ready", "id": second}).status
    facts = browser.facts(f"{path}/confirm?act=run&state=delayed")
    assert 2 == facts["count"]
    assert "2 jobs made due now" in told(browser, f"{path}/run", {"state": "delayed", "agreed": facts["agreed"]})
    at.work()
    assert {first, second, third, ready} == {note["id"] for note in at.trail(event="start")}
    assert [("run", 1), ("run", 2)] == [(verb, count) for verb, _, count in journal(at)]


def test_a_job_that_was_due_meanwhile_is_not_run_twice(at, browser):
    job = at.push(delay=3600)
    run = "/queues/default/default/run"
    told(browser, run, {"state": "delayed", "id": job})
    again = browser.post(run, {"state": "delayed", "id": job})
    assert again.headers["location"].startswith((f"/jobs/{job}?", "/errands/")), "where it was asked for"
    at.work()
    assert "0 jobs made due now" in told(browser, run, {"state": "delayed", "id": job})

    assert [job] == [note["id"] for note in at.trail(event="start")]


def test_a_list_is_a_file_with_a_line_for_each_job_that_fits(at, browser):
    for number in range(5):
        at.push(customer=number % 2, password="s3cret")
    failed_in_thousands(at.queue, 60, customer=4711)

    got = browser.get("/queues/default/default/export?where=customer%3D1")
    rows = [json.loads(line) for line in got.text.splitlines()]
    assert ("application/x-ndjson", 2) == (got.headers["content-type"], len(rows))
    assert [1, 1] == [row["arguments"]["customer"] for row in rows]
    assert "s3cret" not in got.text
    failed_rows = [json.loads(line) for line in browser.get("/failed/export?error=KeyError").text.splitlines()]
    assert (30, {4711}) == (len(failed_rows), {row["arguments"]["customer"] for row in failed_rows})
    assert 'attachment; filename="failed.jsonl"' == browser.get("/failed/export").headers["content-disposition"]
    assert "All that fit, as JSON lines" in browser.get("/failed").text
