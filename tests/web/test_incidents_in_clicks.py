"""Each incident of docs/incidents.md is over after at most four clicks on the pages, counted from the first page."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from queuepool.config.loader import Config
from queuepool.config.settings import ScheduleSettings
from queuepool.stores.factory import keys_of
from tests.support.clicks import Person
from tests.support.dashboards import Browser, config_of, opened
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands
from tests.support.pools import ROOT, Site
from tests.support.processes import halt

MOST = 4
#: by the title of the incident: plays it, and returns the clicks
Played = Callable[[Site], int]


@contextmanager
def sitting(site: Site, config: Config | None = None) -> Iterator[Person]:
    with opened(config or config_of(site, "default", "images", "campaign", "slow")) as browser:
        yield Person(browser)


def a_queue_grows(site: Site) -> int:
    for _ in range(30):
        site.push(queue="images")
    with sitting(site) as person:
        person.click("images")
        assert person.sees_soon("By name, of the 30 looked at"), "what waits"
        person.click("Pause on all hosts")
    assert {"images"} == site.queue.stores.control.read(["images"]).paused
    return person.clicks


def code_that_cannot_be_imported(site: Site) -> int:
    """Its cause stands on the first page; how workers are replaced, the pools below show."""
    cause = "cannot import shop: ModuleNotFoundError: No module named 'stripe_v9'"
    site.queue.stores.control.publish("web9:p:1", {**notice(), "boot_problem": cause})
    with sitting(site) as person:
        assert person.sees(cause)
        person.click("Pools")
        assert [one for one in person.page.controls if one.text == "Replace its workers"]
    return person.clicks + 1


def producers_before_workers(site: Site) -> int:
    failed_in_thousands(site.queue, 40)
    with sitting(site) as person:
        person.click("Failed")
        person.click("ValueError: order … is wrong")
        person.click("Retry all…")
        person.click("Put back 20 failed jobs")
        assert person.sees("20 jobs put back")
    assert 20 == site.queue.stores.failed.count()
    return person.clicks


def a_thousand_fail(site: Site) -> int:
    failed_in_thousands(site.queue, 600)
    with sitting(site) as person:
        person.click("Failed")
        person.click("KeyError: 'customer'")
        person.click("Retry all…")
        person.click("Put back 300 failed jobs", typed="300")
    eventually(lambda: 300 == site.queue.stores.failed.count() == site.queue.size("default"))
    return person.clicks


def one_customer_wants_out(site: Site) -> int:
    for number in range(20):
        site.push(queue="campaign", customer=number % 5)
    with sitting(site) as person:
        person.click("campaign")
        person.type("where", "customer=1")
        person.click("Drop…")
        person.click("Drop 4 jobs")
        assert person.sees("4 jobs dropped")
    assert 16 == site.queue.size("campaign")
    return person.clicks


def the_wrong_queue(site: Site) -> int:
    for number in range(20):
        site.push(queue="campaign", name="do" if number % 2 else "add")
    with sitting(site) as person:
        person.click("campaign")
        person.click("add")
        person.click("Move…")
        person.click("Move 10 jobs", to="slow")
    assert (10, 10) == (site.queue.size("campaign"), site.queue.size("slow"))
    return person.clicks


def scheduled(site: Site) -> Config:
    config = config_of(site)
    nightly = ScheduleSettings(name="nightly", cron="0 2 * * *", job="do", connection=site.connection)
    return replace(config, pools=tuple(replace(pool, schedules=(nightly,)) for pool in config.pools))


def a_schedule_did_not_run(site: Site) -> int:
    with opened(scheduled(site)) as browser:
        browser.post("/schedules/default/nightly/pause")
        person = Person(browser)
        person.click("Schedules")
        assert person.sees("paused")
        person.click("Continue", beside="nightly")
        assert person.sees("schedule nightly continues")
    return person.clicks


def a_schedules_job_failed(site: Site) -> int:
    with sitting(site, scheduled(site)) as person:
        person.click("Schedules")
        assert person.sees("How it ended")
        person.click("Run now", beside="nightly")
    assert 1 == site.queue.size("default")
    return person.clicks


def which_job_is_slow(site: Site) -> int:
    with sitting(site) as person:
        person.click("History")
        person.click("Slowest")
        assert person.sees("Run p95")
    return person.clicks


def a_host_is_lost(site: Site) -> int:
    job = site.push()
    runs = {"name": "do", "id": job, "queue": "default", "attempt": 1, "since": "2026-11-23T03:01:10Z", "running": 5.0}
    processes = [{"role": "worker", "number": 1, "pid": 7, "state": "busy", "job": runs}]
    before = {**notice(processes), "at": site.queue.stores.queue.now() - 60.0}
    site.queue.stores.client.command("HSET", keys_of(site.connection).pools, "web9:p:1", json.dumps(before))
    with sitting(site) as person:
        assert person.sees("lost: it has published nothing")
        assert person.sees(job), "what it ran"
        person.type("id", job)
        assert person.sees("queued"), "what became of it"
    return person.clicks


def notice(processes: list[dict[str, object]] | None = None) -> dict[str, object]:
    about = {"host": "web9", "pool": "p", "state": "running", "workers": 1, "id": "0" * 16}
    return {**about, "processes": processes or []}


ALONE: dict[str, Played] = {
    "A queue grows": a_queue_grows,
    "The new code cannot be imported": code_that_cannot_be_imported,
    "Producers push what the workers do not take yet": producers_before_workers,
    "A thousand jobs fail among ten thousand good ones": a_thousand_fail,
    "One customer wants out of a mailing": one_customer_wants_out,
    "Jobs are in the wrong queue": the_wrong_queue,
    "A schedule did not run": a_schedule_did_not_run,
    "A schedule ran, and its job failed": a_schedules_job_failed,
    "Which job is slow, and since when?": which_job_is_slow,
    "A host is lost": a_host_is_lost,
}
WITH_POOLS = (
    "More workers for an hour, on all hosts", "Jobs hang", "Workers grow", "Did this job run twice?",
    "A host is to be emptied",
)  # fmt: skip
AT_THE_STORE = ("Redis is restarted", "Redis is full")


def test_each_incident_of_the_page_is_played_here():
    titles = re.findall(r"^## (.+)$", (ROOT / "docs/incidents.md").read_text(), re.MULTILINE)

    assert sorted(titles) == sorted([*ALONE, *WITH_POOLS, *AT_THE_STORE])


@pytest.mark.parametrize("title", [*ALONE])
def test_an_incident_is_over_after_at_most_four_clicks(site, title):
    assert ALONE[title](site) <= MOST


def test_so_are_those_that_need_pools(site):
    flags = ("--workers", "1", "--remote", "all", "--keep-done", "1h")
    with (
        site.pool(*flags, "--pool", "web") as web, site.pool(*flags, "--pool", "billing") as billing,
        opened(with_both(site)) as browser,
    ):  # fmt: skip
        eventually(lambda: ["default"] == browser.facts("/pools")["shared"])
        more_workers(browser)
        hanging(site, browser)
        run_twice(site, browser)
        emptied(browser)
        assert 0 == billing.wait()
        web.signal(signal.SIGTERM)  # its directory is billing's, too, where nothing may be left
        assert 0 == web.wait()


def with_both(site: Site) -> Config:
    config = config_of(site)
    return replace(config, pools=tuple(replace(config.pools[0], name=name) for name in ("web", "billing")))


def more_workers(browser: Browser) -> None:
    person = Person(browser)
    person.click("Pools")
    person.click("Scale all", order="+1", **{"for": "1h"})
    eventually(lambda: [2, 2] == [pool["live"] for pool in browser.facts("/pools")["pools"]])
    assert person.clicks <= MOST


def hanging(site: Site, browser: Browser) -> None:
    job = site.push("until", gate=str(site.path / "no-such-gate"), timeout=600)
    eventually(lambda: site.trail(event="start", id=job) and browser.facts("/running")["jobs"])
    eventually(lambda: " MB" in looked_at(browser, "Running"))  # the memory of each worker beside what it runs
    person = Person(browser)
    person.click("Running")
    person.click("Show stack", beside=job)
    assert person.sees("in until_told")
    person.click("Cancel…")
    person.click("Cancel it")
    eventually(lambda: job in {record.id for record in site.queue.stores.failed.page()})
    assert person.clicks <= MOST


def looked_at(browser: Browser, page: str) -> str:
    person = Person(browser)
    person.click(page)
    return person.page.text


def run_twice(site: Site, browser: Browser) -> None:
    job = site.push("raise", maxTries=2, times=1)
    eventually(lambda: "done" == browser.get(f"/api/v1/jobs/{job}").json["state"])
    person = Person(browser)
    person.type("id", job)
    assert person.sees("Attempts that have ended")
    assert person.sees("released")
    assert person.clicks <= MOST


def emptied(browser: Browser) -> None:
    person = Person(browser)
    person.click("Pools")
    person.click("Stop…", beside="billing")
    stop = next(one.text for one in person.page.controls if one.text.startswith("Stop billing on "))
    person.click(stop)
    assert person.clicks <= MOST


@pytest.mark.thorough("test_server.py has the first page while the store is away")
def test_what_the_store_is_stands_on_the_first_page(away, own_server):
    with away.pool("--workers", "1"), opened(config_of(away)) as browser:
        eventually(lambda: browser.facts("/overview")["pools"][0]["state"] == "running")
        own_server.say("CONFIG", "SET", "maxmemory", 1)
        eventually(lambda: "the store has been full since" in browser.get("/").text)
        own_server.say("CONFIG", "SET", "maxmemory", 0)
        halt(own_server.process.pid)
        try:
            eventually(lambda: "the store has been away since" in browser.get("/").text)
        finally:
            own_server.process.send_signal(signal.SIGCONT)
        eventually(lambda: "the store has been away since" not in browser.get("/").text)
