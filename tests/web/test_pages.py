"""What the pages show, from real stores and boards; whatever names and payloads hold is shown as text."""

from __future__ import annotations

import html
import json
import re

import pytest

from queuepool.web import connections
from tests.support.dashboards import config_of, opened
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands

pytestmark = pytest.mark.every_store("at")
HOSTILE = [
    "<script>alert(1)</script>", '"><svg onload=alert(1)>', "{{7*7}}", "{% raw %}", "</textarea>",
    "javascript:alert(1)",
    "</script>\u2028", "\x1b[31mred\x07", "\u202egnp.exe", "a&amp;b<!--",
]  # fmt: skip


def test_the_first_page_has_each_queue_with_what_it_holds(at):
    for number in range(3):
        at.push(number=number)
    at.push(delay=600)
    at.push(queue="other")
    at.queue.stores.control.pause("default", at.queue.stores.queue.now(), "ann@here")
    with opened(config_of(at)) as browser:
        # A page waits for a second for the first answer of a store.
        facts = eventually(lambda: (found := browser.facts("/overview"))["queues"] and found)
        rows = {row["queue"]: row for row in facts["queues"]}

        assert (3, 1, True, "ann@here") == tuple(
            rows["default"][key] for key in ("ready", "delayed", "paused", "paused_by")
        )
        assert (1, False) == (rows["other"]["ready"], rows["other"]["served"])
        assert (4, 1, 0) == tuple(facts["totals"][key] for key in ("ready", "delayed", "failed"))
        # In the order in which their next jobs wait, which may be the same time.
        assert re.search("queues (default, other|other, default) are served by no pool", facts["sentence"])
        page = browser.get("/").text
        assert "no pool serves it" in page
        assert "by ann@here" in page


def test_jobs_of_a_queue_are_found_page_by_page(at):
    pushed = [at.push(customer=number % 4) for number in range(25)]
    with opened(config_of(at)) as browser:
        seen, path = [], "/queues/default/default?limit=10"
        while path:
            facts = browser.facts(path)
            seen += [job["id"] for job in facts["jobs"]]
            path = facts["next"] and f"/queues/default/default?limit=10&after={facts['next']}"
        fitting = browser.facts("/queues/default/default?where=customer%3D3")

        assert pushed == seen
        assert pushed[3::4] == [job["id"] for job in fitting["jobs"]]
        assert [{"value": "do", "jobs": 6}] == fitting["counts"]
        assert [7, 6, 6, 6] == [one["jobs"] for one in browser.facts("/queues/default/default?by=customer")["counts"]]
        assert "Further jobs" in browser.get("/queues/default/default?limit=10").text
        assert 404 == browser.get("/queues/default/no-such").status


def test_an_empty_queue_of_the_configuration_has_a_page_before_it_was_measured(at, monkeypatch):
    monkeypatch.setattr(connections, "FIRST_PATIENCE", 0.0)

    with opened(config_of(at)) as browser:
        assert 200 == browser.get("/queues/default/default").status
        assert 404 == browser.get("/queues/default/no-such").status


def test_failed_jobs_are_shown_by_what_they_have_in_common(at):
    ids = failed_in_thousands(at.queue, 120, customer=4711)
    with opened(config_of(at)) as browser:
        facts = browser.facts("/failed?column=customer")
        by = {facet["by"]: facet["values"] for facet in facts["facets"]}

        assert (120, 120, True, 50) == (facts["total"], facts["found"], facts["is_whole"], len(facts["jobs"]))
        assert {"KeyError: 'customer'": 60, "ValueError: order … is wrong": 60} == {
            one["value"]: one["jobs"] for one in by["error"]
        }
        assert {"4711"} == {job["columns"]["customer"] for job in facts["jobs"]}
        seen, after = [], ""
        while after is not None:
            page = browser.facts(f"/failed?after={after}")
            seen += [job["id"] for job in page["jobs"]]
            after = page["next"]
        assert sorted(ids) == sorted(seen)
        assert 60 == browser.facts("/failed?error=KeyError")["found"]
        assert [] == browser.facts("/failed?queue=other")["jobs"]
        page = browser.get("/failed?error=KeyError").text
        assert 50 == page.count('type="checkbox" name="id"')


def test_what_no_error_says_leads_to_no_search(at):
    for text in ("", "4711"):
        failed_in_thousands(at.queue, 1, error=text)
    with opened(config_of(at)) as browser:
        [by_error] = [facet for facet in browser.facts("/failed")["facets"] if facet["by"] == "error"]

        assert {"-": None, "…": None} == {one["value"]: one["find"] for one in by_error["values"]}
        assert "/failed?error=" not in browser.get("/failed").text


def test_a_long_error_leads_to_the_jobs_that_have_it(at):
    failed_in_thousands(at.queue, 2, error=f"ValueError: {'order ' * 70}4711 is wrong")
    with opened(config_of(at)) as browser:
        [by_error] = [facet for facet in browser.facts("/failed")["facets"] if facet["by"] == "error"]
        [part] = [one["find"] for one in by_error["values"]]
        [link] = re.findall(r'<a href="(/failed\?error=.*?)">', browser.get("/failed").text)

        assert 200 == len(part)
        assert 2 == browser.facts(link)["found"]


def test_a_job_has_a_page_wherever_it_is(at):
    failed = failed_in_thousands(at.queue, 1, order={"customer": 4711})[0]
    waiting, delayed = at.push(order={"customer": 4712}), at.push(delay=60)
    at.queue.push_raw(b'{"uuid":"odd-1","job":7}')
    stores = at.queue.stores
    stores.queue.reserve(["no-such"], stores.queue.join(), 1)
    with opened(config_of(at)) as browser:
        found = {job: browser.facts(f"/jobs/{job}") for job in (failed, waiting, delayed)}

        assert ["failed", "queued", "delayed"] == [facts["state"] for facts in found.values()]
        assert 4711 == found[failed]["arguments"]["order"]["customer"]
        assert 4712 == found[waiting]["arguments"]["order"]["customer"]
        assert "Traceback" in found[failed]["trace"]
        assert found[delayed]["due"]
        assert "Retry" in browser.get(f"/jobs/{failed}").text
        assert 404 == browser.get("/jobs/nope").status
        assert "Nothing is known of this job" in browser.get("/jobs/nope").text


@pytest.mark.thorough("test_incidents_in_clicks.py looks there for a job that ran twice")
def test_the_attempts_that_have_ended_are_on_the_page_of_their_job(at):
    with at.pool("--workers", "1", "--keep-done", "1h"), opened(config_of(at), "operator") as browser:
        job = at.push("raise", maxTries=2, times=1)
        eventually(lambda: browser.get(f"/api/v1/jobs/{job}").json["state"] == "done")
        facts = browser.facts(f"/jobs/{job}")

        assert "the attempts that have ended" == facts["found"]
        assert [(1, "released"), (2, "done")] == [(one["attempt"], one["outcome"]) for one in facts["ended"]]
        assert ["default"] * 2 == [one["pool"] for one in facts["ended"]]
        page = browser.get(f"/jobs/{job}").text
        assert "Attempts that have ended" in page
        assert f'action="/jobs/{job}/cancel"' not in page, "it is over"


def test_of_a_job_whose_attempts_are_not_kept_there_are_none(at):
    job = at.push()
    with opened(config_of(at)) as browser:
        assert [] == browser.facts(f"/jobs/{job}")["ended"]
        assert "Attempts that have ended" not in browser.get(f"/jobs/{job}").text


def test_the_steps_that_are_kept_are_on_the_page_of_their_job(at):
    job, stores = at.push(), at.queue.stores
    [lease] = stores.queue.reserve(["default"], stores.queue.join(), 1).leases
    charge = b'{"id":"<b>7</b>","password":"geheim"}'
    stores.steps.keep(lease, job, {"charge": charge, "ship:9": b"null", "~rows": b"42", "token": b'"heimlich"'})
    with opened(config_of(at)) as browser:
        shown, page = browser.facts(f"/jobs/{job}")["steps"], browser.get(f"/jobs/{job}").text

        kinds = [("charge", "step"), ("ship:9", "step"), ("token", "step"), ("rows", "cursor")]
        assert kinds == [(s["name"], s["kind"]) for s in shown]
        assert 42 == shown[3]["value"]
        assert "<b>" not in page.partition("Steps that are done")[2]
        assert "geheim" not in page
        assert "heimlich" not in page


@pytest.mark.bad_input("B179")
def test_whatever_names_and_payloads_hold_is_shown_as_text(at):
    for text in HOSTILE:
        at.queue.push("do", {"text": text, text: 1}, options={"tags": [text]} if text.isprintable() else {})
    job = at.queue.push("do", {"all": HOSTILE})
    with opened(config_of(at)) as browser:
        pages = [
            browser.get(path).text
            for path in ("/queues/default/default", f"/jobs/{job}", "/queues/default/default?by=text")
        ]
        for page in pages:
            assert not re.search(r"<(script|svg)(?! src=)", page)
            assert "{{7*7}}" in page
        listed = browser.facts("/queues/default/default")["jobs"]
        assert HOSTILE == [one["arguments"]["text"] for one in listed[: len(HOSTILE)]]
        shown = html.unescape(re.findall(r"<h2>Arguments</h2><pre[^>]*>(.*?)</pre>", pages[1], re.DOTALL)[0])
        assert {"all": HOSTILE} == json.loads(shown)


def test_what_is_masked_is_neither_shown_nor_to_be_guessed(at):
    job = at.queue.push("do", {"user": "ann", "password": "s3cret", "nested": {"api_token": ["t0ken"]}})
    failed_in_thousands(at.queue, 1, password="s3cret")
    paths = ["/queues/default/default", f"/jobs/{job}", "/failed?column=password"]
    for role in ("viewer", "operator"):
        with opened(config_of(at), role) as browser:
            for path in paths:
                for text in (browser.get(path).text, browser.get(f"/api/v1{path}").text):
                    assert "s3cret" not in text
                    assert "t0ken" not in text
            assert "ann" in browser.get(paths[0]).text
            for guess in ("where=password%3Ds*", "where=nested.api_token%3Dt*", "by=password"):
                assert 403 == browser.get(f"/queues/default/default?{guess}").status
            assert 403 == browser.get("/queues/default/default?search=s3c").status
    with opened(config_of(at), "admin") as browser:
        assert "s3cret" in browser.facts(f"/jobs/{job}")["raw"]


def test_what_is_shown_of_payloads_is_a_setting(at):
    job = at.queue.push("do", {"user": "ann", "age": 40})
    with opened(config_of(at, data="keys")) as browser:
        facts = browser.facts(f"/jobs/{job}")
        assert ({"user": "•••", "age": "•••"}, None) == (facts["arguments"], facts["raw"])
        assert 403 == browser.get("/queues/default/default?where=user%3Dann").status
    with opened(config_of(at, data="no")) as browser:
        facts = browser.facts(f"/jobs/{job}")
        assert (None, None) == (facts["arguments"], facts["raw"])


@pytest.mark.thorough("test_shown.py bounds texts, and test_openapi.py holds that numbers are exact")
def test_large_payloads_and_numbers_are_bounded_and_exact(at):
    job = at.queue.push("do", {"big": 2**60 + 1, "long": "x" * 500_000, "many": list(range(100_000))})
    with opened(config_of(at)) as browser:
        assert str(2**60 + 1) == browser.facts(f"/jobs/{job}")["arguments"]["big"]
        assert len(browser.get("/queues/default/default").body) < 50_000
        assert len(browser.get(f"/jobs/{job}").body) < 500_000


def test_what_runs_elsewhere_is_read_from_the_notices(at):
    job = {
        "name": "charge",
        "id": "abc",
        "queue": "high",
        "attempt": 2,
        "since": "2026-11-23T03:01:10Z",
        "running": 5.0,
    }
    processes = [{"role": "worker", "number": 3, "pid": 77, "state": "busy", "job": job}]
    notice = {"host": "web2", "pool": "p", "state": "running", "workers": 1, "processes": processes, "id": "0" * 16}
    at.queue.stores.control.publish("web2:p:1", notice)
    with opened(config_of(at)) as browser:
        facts = eventually(lambda: (found := browser.facts("/running"))["jobs"] and found)
        assert [("charge", "web2", 3)] == [(job["name"], job["host"], job["worker"]) for job in facts["jobs"]]
        assert 'href="/jobs/abc?connection=default"' in browser.get("/running").text
        assert 'action="/jobs/abc/cancel"' in browser.get("/jobs/abc").text
        assert 0 == browser.facts("/running?queue=other")["count"]
        [pool] = [row for row in browser.facts("/overview")["pools"] if row["host"] == "web2"]
        assert ("running", 1, 1, True) == tuple(pool[key] for key in ("state", "workers", "live", "is_well"))


def test_a_pool_that_runs_here_is_read_from_its_board(at):
    with at.pool("--workers", "1"), opened(config_of(at)) as browser:
        gate = at.path / "gate"
        job = at.push("until", gate=str(gate))
        [row] = eventually(lambda: at.trail(event="start") and browser.facts("/running")["jobs"])
        assert (job, "do", "default", True) == tuple(row[key] for key in ("id", "name", "pool", "is_here"))
        assert "running" == browser.facts(f"/jobs/{job}")["state"]
        [pool] = browser.facts("/overview")["pools"]
        assert ("running", 1, 1, "here") == tuple(pool[key] for key in ("state", "live", "busy", "kind"))
        stack = browser.post(f"/jobs/{job}/stack")
        assert "poolapp.py" in browser.get(stack.headers["location"]).text
        assert [("stack", f"job {job}")] == [(line.verb, line.subject) for line in at.queue.stores.journal.last(9)]
        gate.touch()
