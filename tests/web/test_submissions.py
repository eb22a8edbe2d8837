"""A form acts once, and what came of it is told, however long it takes."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from queuepool.config.settings import ScheduleSettings
from queuepool.web.acts.acted import Acted
from queuepool.web.guard import Refusal
from queuepool.web.submissions import Submissions
from tests.support.dashboards import Browser, config_of, impatient, opened
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.web.test_acts import journal

RUN = "/schedules/default/nightly/run"
PAUSE = "/queues/default/default/pause"


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


@pytest.fixture
def browser(site):
    config = config_of(site)
    nightly = ScheduleSettings(name="nightly", cron="0 2 * * *", job="do", connection=site.connection)
    with opened(replace(config, pools=tuple(replace(one, schedules=(nightly,)) for one in config.pools))) as found:
        yield found


@contextmanager
def locked(site: Site) -> Iterator[None]:
    """Nobody else can write to the database."""
    holder = sqlite3.connect(site.path / "queuepool.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.close()


def silence(site: Site, pool: str, seconds: float) -> None:
    """As if the pool had last published something so long ago."""
    with sqlite3.connect(site.path / "queuepool.db", timeout=20) as database:
        [(key, text)] = database.execute("SELECT key, value FROM cache WHERE key LIKE ?", (f"%pool:{pool}",)).fetchall()
        notice = json.loads(text)
        old = json.dumps({**notice, "at": notice["at"] - seconds})
        database.execute("UPDATE cache SET value = ? WHERE key = ?", (old, key))
    database.close()


def key_of(browser: Browser, page: str, action: str) -> str:
    form = re.search(
        rf'action="{re.escape(action)}".*?name="once" value="([0-9a-f]+)"', browser.get(page).text, re.DOTALL
    )
    assert form
    return form[1]


def test_a_form_that_is_sent_twice_acts_once(site, browser):
    key = key_of(browser, "/schedules", RUN)
    first, second = (browser.post(RUN, {"once": key}).headers["location"] for _ in range(2))

    assert 1 == site.queue.size("default")
    assert [("schedule run", 1)] == [(verb, 1) for verb, _, _ in journal(site)]
    words = re.search(r"job \S+ of schedule nightly was pushed", browser.get(first).text)
    assert words
    assert f"sent twice, done once: {words[0]}" in browser.get(second).text
    assert "again=" not in browser.get(second).text, "no link of the page keeps that"
    assert key != key_of(browser, "/schedules", RUN)
    browser.post(RUN, {"once": key_of(browser, "/schedules", RUN)})
    assert 2 == site.queue.size("default")
    for _ in range(2):
        browser.post(RUN)
    assert 4 == site.queue.size("default"), "without a key each is another"


def test_a_key_is_of_one_form_and_one_visitor(site, browser):
    form = {"once": "k" * 32}
    assert 303 == browser.post(PAUSE, form).status
    assert 303 == browser.post("/queues/default/default/continue", form).status
    assert set() == site.queue.stores.control.read(["default"]).paused
    assert [200, 200] == [browser.send(f"/api/v1{RUN}", form).status for _ in range(2)]
    assert 1 == site.queue.size("default")


def test_what_was_not_done_may_be_sent_again(site, browser):
    form = {"once": "k" * 32}
    resume = "/schedules/default/nightly/continue"
    assert "was not paused" in browser.get(browser.post(resume, form).headers["location"]).text
    browser.post("/schedules/default/nightly/pause")
    assert "schedule nightly continues" in browser.get(browser.post(resume, form).headers["location"]).text


def test_what_may_have_been_done_is_not_done_again():
    threads = ThreadPoolExecutor(1)
    submissions, done = Submissions(threads), list[str]()
    outcomes = {
        "pushed, unanswered": (Refusal(503, "no answer"), True),
        "an error of ours": (Refusal(500, "which the log has"), True),
        "an errand that broke off": (Acted("not finished", "/", is_good=False), True),
        "refused": (Refusal(409, "count them again"), False),
        "nothing to do": (Acted("was not paused", "/", is_good=False, is_untouched=True), False),
    }
    for sent, (outcome, is_kept) in outcomes.items():
        for is_again in (False, is_kept):
            one, found = submissions.take(sent, lambda sent=sent, outcome=outcome: done.append(sent) or outcome)
            assert (is_again, outcome) == (found, one.future.result(20)), sent
        assert (1 if is_kept else 2) == done.count(sent)
    threads.shutdown()


@pytest.mark.thorough("what was done is not done again above, whatever it was")
def test_pools_of_which_one_is_lost_are_scaled_once(site, browser):
    with site.pool("--workers", "1"):
        [notice] = eventually(lambda: site.queue.stores.control.pools(60.0))
        site.queue.stores.control.publish("dead:1", {**notice, "host": "dead", "id": "d" * 12})
        silence(site, "dead:1", 60.0)
        form = {"once": "k" * 32, "order": "+1"}
        first, second = (browser.send("/api/v1/pools/default/all/scale", form) for _ in range(2))
        assert (200, 200) == (first.status, second.status)
        assert first.json["words"] == second.json["words"]
        assert "2 workers" in first.json["words"]
        assert "so it was not told" in first.json["words"]
        lost = browser.send(f"/api/v1/pools/default/{'d' * 12}/pause", {"once": "l" * 32})
        assert (409, False) == (lost.status, lost.json["is_done"])


def test_two_clicks_at_once_are_one_and_what_is_over_makes_room():
    gate, threads = threading.Event(), ThreadPoolExecutor(2)
    submissions, done = Submissions(threads), list[str]()

    def act() -> Acted:
        gate.wait(20)
        done.append("x")
        return Acted("done", "/")

    first, is_again = submissions.take("form", act)
    assert (False, (first, True)) == (is_again, submissions.take("form", act))
    assert (None, True) == (first.came, submissions.are_under_way())
    others = [submissions.take("", act)[0] for _ in range(63)]
    with pytest.raises(Refusal, match="64 actions are under way"):
        submissions.take("", act)
    gate.set()
    eventually(lambda: not submissions.are_under_way())
    assert (64, "done") == (len(done), first.outcome and first.outcome.words)
    for _ in range(200):
        last, _ = submissions.take("", act)
        eventually(last.future.done)
    assert [None, None, last] == [submissions.get(one.id) for one in (first, others[0], last)]
    threads.shutdown()


def test_an_action_that_takes_longer_than_a_request_is_told_on_a_page_of_its_own(site):
    with impatient(config_of(site)) as browser:
        with locked(site):
            page = browser.post(PAUSE, {"once": "k" * 32}).headers["location"]
            assert page == browser.post(PAUSE, {"once": "k" * 32}).headers["location"]
            assert "This is still under way" in browser.get(page).text
            program = browser.send(f"/api/v1{PAUSE}", {})
            assert (202, False, "running") == (program.status, program.json["is_done"], program.json["state"])
        eventually(lambda: browser.facts(page)["state"] == "done")
        assert "queue default is paused on all hosts" in browser.get(page).text
        [on] = re.findall(r'<a href="(.*?)">Go on', browser.get(page).text)
        assert on.startswith("/queues/default/default?told=")
        assert re.search(r'role="status".*?queue default is paused on all hosts', browser.get(on).text, re.DOTALL)
        # One that is refused may be over before anybody waits for it: then the answer says so itself.
        late = browser.post("/pools/default/no-such/pause")
        if page := late.headers.get("location"):
            eventually(lambda: browser.facts(page)["state"] == "failed")
            late = browser.get(page)
        assert "this pool publishes nothing any more" in late.text.lower()  # a heading begins with a capital
        assert 404 == browser.get("/submissions/no-such").status
    assert "pause" in [verb for verb, _, _ in journal(site)]


def test_what_is_under_way_when_the_dashboard_ends_is_finished_and_then_the_stores_are_closed(site):
    def open_logs() -> int:
        paths = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
        # Not of the database itself: SQLite closes none of a file on which this process holds a lock.
        return sum(path == str(site.path / "queuepool.db-wal") for path in paths)

    site.queue.stores.control.read(["default"])
    before = open_logs()
    with locked(site):
        with impatient(config_of(site)) as browser:
            page = browser.post(PAUSE).headers["location"]
            assert "This is still under way" in browser.get(page).text
        assert not [one for one in journal(site) if one[0] == "pause"]
    eventually(lambda: [("pause", "queue default", None)] == journal(site))
    eventually(lambda: open_logs() == before)


def test_a_page_that_renews_itself_is_not_sent_again_though_each_has_forms_of_its_own(site, browser):
    page, part = "/schedules", "/queues/default/default?part=live"
    whole = browser.get(page)
    assert "no-store" == whole.headers["cache-control"]
    assert 200 == browser.get(page, if_none_match=whole.headers["etag"]).status, "its forms may have been sent"
    renewed = browser.get(part)
    assert 304 == browser.get(part, if_none_match=renewed.headers["etag"]).status
