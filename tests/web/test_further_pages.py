"""Pools, schedules, quarantine, history and the journal: what is on their pages, and what is done there."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from queuepool.config.alerts import AlertSettings
from queuepool.config.settings import ScheduleSettings
from queuepool.web.charts import HEIGHT, line, throughput
from queuepool.web.pages.alerts import ADVICE
from tests.support.dashboards import Browser, config_of, opened
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands
from tests.web.test_acts import journal, told

pytestmark = pytest.mark.every_store("at")


def test_a_pool_is_told_what_to_do_and_its_answer_is_shown(at):
    with at.pool("--workers", "1", "--remote", "all") as pool, opened(config_of(at)) as browser:
        reach = eventually(lambda: reach_of(browser))
        # What else has its names: one in another container, or the one before the last restart.
        [notice] = at.queue.stores.control.pools(60.0)
        for number in range(3):
            at.queue.stores.control.publish(f"a:{number}", {**notice, "id": f"{number}" * 12})
        assert reach == reach_of(browser)
        for wrong in ({"host": "web9", "pool": "default"}, {"host": notice["host"], "pool": "shop"}):
            assert 404 == browser.post(f"/pools/{reach['connection']}/{reach['id']}/stop", wrong).status
        assert f'name="pool" value="{notice["pool"]}"' in browser.get("/pools").text
        path = f"/pools/{reach['connection']}/{reach['id']}"

        assert "2 workers" in told(browser, f"{path}/scale", {"order": "+1"})
        eventually(lambda: browser.facts("/pools")["pools"][0]["live"] == 2)
        assert "default" in told(browser, f"{path}/pause")
        eventually(lambda: browser.facts("/pools")["pools"][0]["state"] == "paused")
        assert "default" in told(browser, f"{path}/continue")
        eventually(lambda: browser.facts("/pools")["pools"][0]["state"] == "running")
        assert "default" in told(browser, f"{path}/reload")
        assert 400 == browser.post(f"{path}/scale", {"order": "many"}).status
        assert 404 == browser.post(f"/pools/{reach['connection']}/{'0' * 16}/pause").status
        eventually(lambda: ["scale +1", "pause", "continue", "reload"] == [verb for verb, _, _ in journal(at)])
        assert {"eve"} == {line.by.partition("@")[0] for line in at.queue.stores.journal.last(9)}
        assert "its running jobs may finish" in told(browser, f"{path}/stop")
        assert 0 == pool.wait()


@pytest.mark.thorough("test_incidents_in_clicks.py scales all for an hour")
def test_all_pools_are_told_at_once_and_for_a_time(at):
    with at.pool("--workers", "1"), opened(config_of(at)) as browser:
        eventually(lambda: reach_of(browser))
        assert [] == browser.facts("/pools")["shared"], "there is one"
        words = told(browser, "/pools/default/all/scale", {"order": "+1", "for": "1h"})
        assert "2 workers" in words
        eventually(lambda: browser.facts("/pools")["pools"][0]["live"] == 2)
        assert "1 worker" in told(browser, "/pools/default/all/scale", {"order": "auto"})
        assert 400 == browser.post("/pools/default/all/stop").status
        for wrong in ({"order": "+1", "for": "soon"}, {"order": "auto", "for": "1h"}, {"order": "+1", "for": "0"}):
            assert 400 == browser.post("/pools/default/all/scale", wrong).status


def test_a_job_is_found_by_its_id_from_every_page(at):
    job = at.push()
    with opened(config_of(at), "viewer") as browser:
        assert 'action="/jobs"' in browser.get("/journal").text
        assert ("queued", job) == tuple(browser.facts(f"/jobs?id={job}")[key] for key in ("state", "id"))
        assert 404 == browser.get("/jobs").status


@pytest.mark.thorough("test_pages.py reads it from the notices; pool/test_many_hosts.py asks such a pool for a stack")
def test_a_job_of_a_pool_whose_board_is_elsewhere_is_reached_through_the_store(at):
    config = config_of(at)
    far = replace(config, pools=tuple(replace(pool, runtime_dir=at.path / "nowhere") for pool in config.pools))
    with at.pool("--workers", "1"), opened(far) as browser:
        job, gate = at.push("until", gate=str(at.path / "gate")), at.path / "gate"
        [row] = eventually(lambda: at.trail(event="start") and browser.facts("/running")["jobs"])
        assert (job, False) == (row["id"], row["is_here"])
        stack = browser.post(f"/jobs/{job}/stack")
        assert "poolapp.py" in browser.get(stack.headers["location"]).text
        assert [("stack", f"job {job}", None)] == journal(at)
        gate.touch()


def reach_of(browser: Browser) -> dict[str, str] | None:
    [pool] = browser.facts("/pools")["pools"]
    found: dict[str, str] | None = pool["reach"]
    return found


def test_a_schedule_is_paused_and_pushed_by_hand(at):
    config = config_of(at)
    nightly = ScheduleSettings(name="nightly", cron="0 2 * * *", job="do", connection=at.connection)
    config = replace(config, pools=tuple(replace(pool, schedules=(nightly,)) for pool in config.pools))
    with opened(config) as browser:
        path = "/schedules/default/nightly"
        [row] = browser.facts("/schedules")["schedules"]
        assert ("nightly", "0 2 * * * UTC", "new") == (row["schedule"], row["when"], row["state"])

        assert "schedule nightly is paused on all hosts" == told(browser, f"{path}/pause")
        [row] = browser.facts("/schedules")["schedules"]
        assert ("paused", "eve") == (row["state"], row["paused_by"].partition("@")[0])
        assert "Continue" in browser.get("/schedules").text
        assert "schedule nightly continues" == told(browser, f"{path}/continue")
        assert "was not paused" in told(browser, f"{path}/continue")
        assert "of schedule nightly was pushed" in told(browser, f"{path}/run")
        assert 1 == at.queue.size("default")
        assert 404 == browser.post("/schedules/default/hourly/run").status
    assert ["schedule pause", "schedule resume", "schedule run"] == [verb for verb, _, _ in journal(at)]


def test_a_payload_in_quarantine_is_put_back_or_dropped(at):
    for number in range(2):
        at.queue.push_raw(b'{"uuid":"odd-%d","job":7,"password":"s3cret"}' % number)
    at.work()
    with opened(config_of(at)) as browser:
        first, second = browser.facts("/quarantine")["entries"]
        assert ("default", "s3cret" in first["payload"]) == (first["queue"], True)
        path = f"/quarantine/default/default/{first['id']}"
        assert f"payload {first['id']} was put back on its queue" == told(browser, f"{path}/retry")
        assert "is not in the quarantine" in told(browser, f"{path}/retry")
        assert told(browser, f"/quarantine/default/default/{second['id']}/drop").endswith("was dropped")
        assert ([], 1) == (browser.facts("/quarantine")["entries"], at.queue.size("default"))
    at.work()
    with opened(config_of(at), "viewer") as browser:
        assert "s3cret" not in browser.get("/quarantine").text
    assert [("quarantine retry", 1), ("quarantine drop", 1)] == [(verb, count) for verb, _, count in journal(at)]


def test_the_journal_has_who_did_what_the_latest_first(at):
    for number in range(3):
        at.queue.stores.journal.write("ann@web1", "pause", f"queue <b>q{number}</b>")
    with opened(config_of(at), "viewer") as browser:
        lines = browser.facts("/journal")["lines"]
        assert ["queue <b>q2</b>", "queue <b>q1</b>", "queue <b>q0</b>"] == [line["subject"] for line in lines]
        assert ["queue <b>q1</b>"] == [line["subject"] for line in browser.facts("/journal?text=Q1")["lines"]]
        assert (1, True) == (
            len(browser.facts("/journal?limit=1")["lines"]),
            browser.facts("/journal?limit=1")["is_more"],
        )
        assert "<b>" not in browser.get("/journal").text


def notice_with(*alerts: dict[str, object]) -> dict[str, object]:
    facts = {"value": 70.0, "limit": 60.0, "since": "2026-11-23T03:01:10Z"}
    about = {"host": "web2", "pool": "p", "state": "running", "workers": 0, "processes": [], "id": "0" * 16}
    return {**about, "alerts": [{**facts, **alert} for alert in alerts]}


def test_alerts_that_are_raised_lead_to_the_page_on_which_to_look(at):
    at.push()
    notice = notice_with(
        {"kind": "wait", "subject": "default", "text": "queue default: the next job has been ready for 70 s"},
        {"kind": "of_a_later_version", "subject": "x", "text": "odd", "since": "2026-11-23T03:00:00Z"},
        {"kind": "lost", "subject": "web3:p", "text": "pool <b>p</b> of web3 is lost"},
    )
    at.queue.stores.control.publish("web2:p:1", notice)
    with opened(config_of(at), "viewer") as browser:
        facts = eventually(lambda: (found := browser.facts("/alerts"))["alerts"] and found)
        pages = {row["kind"]: row["page"] for row in facts["alerts"]}
        assert {"of_a_later_version": None, "lost": "/pools", "wait": "/queues/default/default"} == pages
        assert "of_a_later_version" == facts["alerts"][0]["kind"], "the oldest first"
        assert ([], {"web2/p"}) == (facts["limits"], {row["pool"] for row in facts["alerts"]})
        page = browser.get("/alerts").text
        assert "3 alerts are raised" in page
        assert "<b>p" not in page
        assert "has no section" in page
        for path in set(pages.values()) - {None}:
            assert 200 == browser.get(path).status


@pytest.mark.parametrize("data", ["yes", "keys", "no"])
def test_an_alert_names_a_flow_only_to_those_who_are_shown_names(at, data):
    words = "flow Hv: none of its jobs has begun or ended for 70 s (limit 60 s)"
    notice = notice_with({"kind": "stalled", "subject": "Hv", "text": f"{words}; its name is Alice"})
    at.queue.stores.control.publish("web2:p:1", notice)
    with opened(config_of(at, data=data)) as browser:
        [row] = eventually(lambda: browser.facts("/alerts")["alerts"])
        assert (data == "yes") == ("Alice" in browser.get("/alerts").text)
    assert row["text"] == (f"{words}; its name is Alice" if data == "yes" else words)


def test_an_alert_has_the_figures_that_the_page_shows_beside_it(at):
    texts = {kind: f"{kind}: as it was a minute ago" for kind in ("wait", "quarantine", "running", "failed", "crashes")}
    subjects = {"running": "shop.slow", "failed": "failed jobs", "crashes": "p"}
    notice = notice_with(*({"kind": k, "subject": subjects.get(k, "default"), "text": t} for k, t in texts.items()))
    job = {"name": "shop.slow", "id": "1", "queue": "q", "since": "2026-11-23T03:01:10Z", "running": 123.4}
    notice["processes"] = [{"role": "worker", "number": 1, "pid": 77, "state": "busy", "job": job}]
    at.queue.stores.control.publish("web2:p:1", notice)
    failed_in_thousands(at.queue, 3)
    with opened(config_of(at), "viewer") as browser:
        found = eventually(lambda: {row["kind"]: row["text"] for row in browser.facts("/overview")["alerts"]})
    assert {
        "wait": "queue default: the next job has been ready for 0 s (limit 60 s)",
        "quarantine": "queue default: 0 payloads in quarantine (limit 60)",
        "running": "job shop.slow has run for 123 s (limit 60 s)",
        "failed": "failed jobs: 3 kept (limit 60)",
        "crashes": texts["crashes"],
    } == found


def test_the_limits_of_alerts_are_those_of_the_configuration_and_of_each_kind(at):
    config = config_of(at)
    limits = AlertSettings(wait=(("", 60.0), ("imports", 3600.0)), failures=0.05, store=0.0)
    config = replace(config, pools=tuple(replace(pool, alerts=limits) for pool in config.pools))
    with opened(config) as browser:
        found = {row["kind"]: row["limit"] for row in browser.facts("/alerts")["limits"]}
        assert ("5%", "1000", "1") == (found["failures"], found["failed"], found["quarantine"])
        assert found["wait"].startswith("1m")
        assert ", imports: 1h" in found["wait"]
        assert "store" not in found, "0 is none"
        assert "No alert is raised" in browser.get("/alerts").text
    assert {"repeat", "program", "webhook"} == {one.name for one in fields(AlertSettings)} - set(ADVICE)


def test_a_history_without_anything_is_a_page_and_a_wrong_range_is_refused(at):
    with opened(config_of(at), "viewer") as browser:
        facts = eventually(lambda: (found := browser.facts("/history?range=2d"))["charts"] and found)
        assert ([], "2d", 600) == (facts["jobs"], facts["range"], facts["bucket_seconds"])
        assert "Nothing was done in this time" in browser.get("/history").text
        for wrong in ("range=-1", "range=99999d", "order=drop", "range=1h&range=2d"):
            assert 400 == browser.get(f"/history?{wrong}").status


def test_charts_stack_what_ended_and_break_where_nothing_is_known():
    buckets = [
        {"at": f"2026-11-26T10:0{number}:00Z", "done": done, "released": 0, "failed": 1, "lost": 0, "events": events}
        for number, (done, events) in enumerate([(3, {}), (0, {"restart": 2, "max_jobs": 9}), (1, {"max_jobs": 1})])
    ]
    bars = throughput(buckets)
    waits = line(buckets, "Waited", [2.0, None, 1.0], "s")

    assert (4, 5, ["done", "failed", "failed", "done", "failed"]) == (
        bars["top"], len(bars["bars"]), [bar["kind"] for bar in bars["bars"]],
    )  # fmt: skip
    heights = [float(bar["height"]) for bar in bars["bars"]]
    assert HEIGHT == heights[0] + heights[1] == 4 * heights[2]
    assert ["restart"] == [mark["words"] for mark in bars["marks"]]
    assert 2 == len(waits["strokes"])
    assert [[], []] == [throughput([])["bars"], line([], "Waited", [], "s")["strokes"]]
