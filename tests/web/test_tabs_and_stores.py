"""Open pages cost a store what one costs, and a store that hangs keeps nobody waiting who does not ask for it."""

from __future__ import annotations

import json
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from queuepool.errors import StoreDown
from queuepool.operating import notices
from queuepool.operating.choice import EveryPool
from queuepool.stores.contract import Measured
from queuepool.stores.factory import keys_of
from queuepool.web.connections import RANGES, MeasuredQueue, StoreFacts, StoreLink
from queuepool.web.desk import Desk
from queuepool.web.pages.queues import remarks, size_rows
from queuepool.web.threads import Snapshot
from tests.support.dashboards import config_of, config_on, impatient, opened
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.processes import halt
from tests.web.test_acts import journal, told

PAGE = "/queues/default/default"
#: how pages say that there is nothing
EMPTY = re.compile("It is empty|Nothing was done|There is no schedule|No failed job|Nothing is known|No such job")


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with site_on("sqlite", request) as found:
        yield found


def asked(server) -> int:
    return int(server.say("INFO", "stats")["total_commands_processed"])


def test_a_queue_page_that_renews_itself_reads_no_job_and_counts_are_read_once_for_all(away, own_server):
    away.queue.bulk([("do", {"number": number}) for number in range(4000)])
    with opened(config_of(away)) as browser:
        costs = []
        for _ in range(5):
            before = asked(own_server)
            facts = browser.facts(PAGE)
            costs.append(asked(own_server) - before)
        assert [{"value": "do", "jobs": facts["counted"]}] == facts["counts"]
        assert min(costs[1:]) < costs[0] / 2, costs
        before = own_server.say("INFO", "commandstats").get("cmdstat_lrange", {"calls": 0})["calls"]
        live = [browser.facts(f"{PAGE}?part=live") for _ in range(20)]
        assert ([], 4000) == (live[-1]["jobs"], live[-1]["sizes"]["ready"])
        # Of the sizes: the next job of each queue, once in two seconds.
        after = own_server.say("INFO", "commandstats")["cmdstat_lrange"]["calls"]
        assert after - before < 10
        page = browser.get(f"{PAGE}?part=live").text
        assert ("<dl", False) == ("<dl" if "<dl" in page else "", "<table" in page)


def test_the_page_of_a_job_renews_itself_as_long_as_the_job_changes_and_is_read_once_for_all(away, own_server):
    job = away.push()
    with opened(config_of(away)) as browser:
        before = asked(own_server)
        page = browser.get(f"/jobs/{job}").text
        once = asked(own_server) - before
        renewed = [browser.get(f"/jobs/{job}?part=live").text for _ in range(20)]
        assert asked(own_server) - before < 5 * once
        assert all('data-live="job">' in text and "<strong>queued</strong>" in text for text in (page, *renewed))
        assert [True, False] == ["<h2>Arguments" in text for text in (page, renewed[-1])], "what does not change"

        away.work()
        over = eventually(lambda: (got := browser.get(f"/jobs/{job}?part=live")).status == 404 and got)
        assert 'data-live="job" data-over>' in over.text
        assert "Nothing is known of this job" in over.text
        failed = away.push("raise", maxTries=1)
        away.work()
        assert 'data-live="job" data-over>' in browser.get(f"/jobs/{failed}").text


@pytest.mark.thorough("the first test counts what renewed pages cost a store")
def test_who_looks_for_one_job_or_at_the_quarantine_does_not_have_all_keys_read_again(away, own_server):
    def scans() -> int:
        return int(own_server.say("INFO", "commandstats").get("cmdstat_scan", {"calls": 0})["calls"])

    job = away.push(queue="served-by-nobody")
    with opened(config_of(away)) as browser:
        assert "served-by-nobody" == browser.facts(f"/jobs/{job}")["queue"], "also if nothing is known yet"
        before = scans()
        for _ in range(20):
            assert 404 == browser.get("/jobs/no-such").status
            assert [] == browser.facts("/quarantine")["entries"]
        assert scans() - before < 10, "the watcher alone does, once in two seconds"
        assert "served-by-nobody" == browser.facts(f"/jobs/{job}")["queue"]


def test_who_looks_at_what_is_known_waits_for_nobody_who_asks_a_store_that_hangs(away, own_server):
    # Two seconds, the usual ones, may be too few for three pages on a crowded machine.
    patient = config_on([replace(away.connection, timeout=4.0)], away)
    with opened(patient) as browser, ThreadPoolExecutor(12) as people:
        assert not browser.facts("/overview")["problems"]
        halt(own_server.process.pid)
        try:
            waiting = [people.submit(browser.get, path) for path in ("/failed", PAGE, "/journal") for _ in range(4)]
            assert {200, 404} == {browser.get(path).status for path in ("/", "/pools", "/no-such")}
            assert not [one for one in waiting if one.done()], "each waits for four seconds at least"
            assert {503} == {one.result().status for one in waiting}
            eventually(lambda: browser.facts("/overview")["problems"])
            assert 503 == browser.get("/failed").status
        finally:
            own_server.process.send_signal(signal.SIGCONT)
        # An action asks at once, whatever was known a moment ago, and leaves its line.
        assert "queue default is paused on all hosts" == told(browser, f"{PAGE}/pause")
    assert [("pause", "queue default", None)] == journal(away)


def test_of_a_store_that_does_not_answer_nothing_is_said_to_be_well_or_empty(away, own_server, monkeypatch):
    silent = {"host": "web2", "pool": "p", "state": "running", "workers": 0, "processes": [], "id": "0" * 16}
    silent["at"] = own_server.say("TIME")[0]
    own_server.say("HSET", keys_of(away.connection).pools, "web2:p:1", json.dumps(silent))
    with opened(config_of(away)) as browser:

        def pool() -> tuple[str, str]:
            [found] = [row for row in browser.facts("/overview")["pools"] if row["host"] == "web2"]
            return found["kind"], found["state"]

        assert ("elsewhere", "running") == pool()
        halt(own_server.process.pid)
        try:
            eventually(lambda: browser.facts("/overview")["problems"])
            assert browser.facts("/overview")["sentence"].startswith("The store of connection default does not answer")
            monkeypatch.setattr(notices, "NOTICE_LASTS", 5.0)  # not before: a late first look would find it lost
            eventually(lambda: ("lost", "lost") == pool())
            assert "<strong>Not known:</strong>" in browser.get(f"{PAGE}?part=live").text
            for path in ("/quarantine", "/journal", "/schedules", "/failed", "/jobs/abc", PAGE):
                page = browser.get(path).text
                assert re.search(r"<(td|p)[^>]*>Not known\.", page), path
                assert not EMPTY.search(page), path
        finally:
            own_server.process.send_signal(signal.SIGCONT)


def test_a_store_that_hangs_delays_no_other(away, own_server, site):
    connections = [*(replace(away.connection, name=name) for name in "ab"), replace(site.connection, name="c")]
    desk = Desk(config_on(connections, site))
    first, second, third = desk.links.values()
    halt(own_server.process.pid)
    try:
        for link in (first, second):
            for name in RANGES:
                link.past(name, 0.0)
            link.facts(0.0)
        assert third.facts(10.0).value
        assert [(None, "")] * 2 == [(facts.value, facts.problem) for facts in (first.facts(0.0), second.facts(0.0))]
    finally:
        own_server.process.send_signal(signal.SIGCONT)
        desk.close()


def test_actions_that_wait_for_a_store_that_hangs_leave_threads_for_those_on_others(away, own_server, site):
    connections = [replace(away.connection, name="hangs"), replace(site.connection, name="other")]
    halt(own_server.process.pid)
    try:
        with impatient(config_on(connections, site)) as browser:
            statuses = [browser.post("/queues/hangs/default/pause").status for _ in range(10)]
            assert [303] * 4 + [503] * 6 == statuses
            refused = browser.send("/api/v1/queues/hangs/default/pause", {"once": "k" * 32})
            assert "4 actions wait for this store" in refused.json["error"]
            page = browser.post("/queues/other/default/pause").headers["location"].partition("?")[0]
            eventually(lambda: browser.facts(page)["state"] == "done")
    finally:
        own_server.process.send_signal(signal.SIGCONT)


def test_a_page_that_asks_too_much_does_not_make_its_store_count_as_away(site):
    config = config_of(site)
    link = StoreLink(EveryPool(config), config.pools[0].connection)

    def slow(_: object) -> None:
        raise StoreDown("no answer within 2 s")

    for _ in range(3):
        with pytest.raises(StoreDown):
            link.ask(slow)
    assert 0 == link.ask(lambda queue: queue.size("default"))
    eventually(lambda: link.facts(1.0).value)
    link.close()


def test_who_still_reads_a_store_at_its_end_closes_it(away, own_server):
    config, gate = config_of(away), threading.Event()
    link = StoreLink(EveryPool(config), config.pools[0].connection)
    away.queue.close()

    def clients() -> int:
        return len(own_server.say("CLIENT", "LIST"))

    before = clients()
    with ThreadPoolExecutor(2) as people:
        first, last = (people.submit(link.ask, lambda queue: gate.wait(20) and queue.size("default")) for _ in range(2))
        link.close()
        gate.set()
        assert [0, 0] == [first.result(), last.result()]
    eventually(lambda: clients() == before)


def test_an_action_waits_for_its_store_as_long_as_a_command_does(away, own_server):
    config = config_of(away)
    link = StoreLink(EveryPool(config), config.pools[0].connection)
    link.do(lambda queue: queue.size("default"))
    link.ask(lambda queue: queue.size("default"))
    found = list[int]()
    halt(own_server.process.pid)
    try:
        acting = threading.Thread(target=lambda: found.append(link.do(lambda queue: queue.size("default"))))
        acting.start()
        with pytest.raises(StoreDown):
            link.ask(lambda queue: queue.size("default"))
        assert acting.is_alive()
    finally:
        own_server.process.send_signal(signal.SIGCONT)
    acting.join(20)
    assert [0] == found
    link.close()


def test_while_a_store_is_away_the_sizes_are_the_latest_that_anybody_has_measured(site):
    with site.pool("--workers", "1"):
        desk = Desk(config_of(site))
        eventually(lambda: desk.boards.readings()[0].reading and desk.boards.readings()[0].reading.counts.queues)
        mark = desk.links["default"].facts(10.0).value.queues[0].mark
        sizes = Measured(999, 0, 0, 0, oldest=None, now=0.0)
        facts = StoreFacts((MeasuredQueue("default", sizes, None, mark), MeasuredQueue("other", sizes, None, mark)))

        def ready(age: float, problem: str) -> dict[str, int]:
            return {row["queue"]: row["ready"] for row in size_rows(desk, [("default", Snapshot(facts, age, problem))])}

        eventually(lambda: {"default": 0, "other": 999} == ready(1e6, "away"))
        assert {"default": 999, "other": 999} == ready(1e6, "") == ready(-5.0, "away")
        assert 1000 == remarks([("default", Snapshot(facts, 1000.0, "away"))])["measured_ago"]
        desk.close()
