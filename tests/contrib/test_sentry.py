"""Sentry's SDK in real producers, workers and stewards, with a transport of the tests' own."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.contrib.conftest import LIBRARIES
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.pools import Site

pytestmark = pytest.mark.libraries(*LIBRARIES)

JOBS = """
import asyncio, os, signal
import sentry_sdk
from queuepool import current, job
from tests.support.poolapp import hang_in_c

@job("first")
def first(order=0):
    sentry_sdk.add_breadcrumb(message=f"order {order}")
    fails.dispatch("-".join(["4111", "1111"]))

@job("fails", tries=2, backoff=0)
def fails(card=""):
    raise ValueError("as asked")

@job("beside", tries=1)
async def beside(order):
    for number in range(3):
        sentry_sdk.add_breadcrumb(message=f"order {order}")
        await asyncio.sleep(0.1)
    raise ValueError(f"order {order}")

@job("killed", tries=1, timeout=30)
def killed(how="kill"):
    os.kill(os.getpid(), signal.SIGKILL) if how == "kill" else hang_in_c()
"""
PRODUCER = """
import tests.support.sentry_events, sentry_sdk, traced

with sentry_sdk.start_transaction(op="http.server", name="checkout"):
    traced.first.dispatch(7)
"""
#: as sentry-laravel's hook of createPayloadUsing leaves a payload
OF_PHP = (
    b'{"uuid":"8f1d5ad4-7f6a-4d4b-9a53-0e2b6f0a3c11","displayName":"%b","job":"%b","maxTries":1,"data":[],'
    b'"sentry_baggage_data":"sentry-trace_id=771a43a4192642f0b136d5159a501700,sentry-sampled=true",'
    b'"sentry_trace_parent_data":"771a43a4192642f0b136d5159a501700-1234567890abcdef-1",'
    b'"sentry_publish_time":1763889000.25,"id":"php","attempts":0,"delay":null}'
)
TRACE, SPAN = "771a43a4192642f0b136d5159a501700", "1234567890abcdef"
FLAGS = ("--modules", "traced", "--listeners", "tests.support.sentry_events,queuepool.contrib.sentry")


def sent(site: Site, kind: str) -> list[dict[str, Any]]:
    return [{**line["sent"], "attached": line["attached"]} for line in site.trail(event="sent", kind=kind)]


def test_one_trace_leads_from_a_dispatch_to_the_failure_of_the_job_that_followed(traced):
    warm.run([sys.executable, "-c", PRODUCER], env=traced.env(), cwd=traced.path, check=True)
    traced.work(*FLAGS)
    checkout, first, *attempts = sent(traced, "transaction")
    [event] = sent(traced, "event")
    contexts = [one["contexts"]["trace"] for one in (checkout, first, *attempts, event)]

    assert ["checkout", "first", "fails", "fails"] == [one["transaction"] for one in (checkout, first, *attempts)]
    assert 1 == len({context["trace_id"] for context in contexts})
    assert [("queue.process", "ok"), ("queue.process", "internal_error"), ("queue.process", "internal_error")] == [
        (context["op"], context["status"]) for context in contexts[1:4]
    ]
    assert checkout["spans"][0]["span_id"] == contexts[1]["parent_span_id"]
    assert ("queue.publish", "first") == (checkout["spans"][0]["op"], checkout["spans"][0]["description"])
    assert contexts[3]["span_id"] == contexts[4]["span_id"]
    data = contexts[3]["data"]
    assert ("default", 1) == (data["messaging.destination.name"], data["messaging.message.retry.count"])
    assert 0 <= contexts[1]["data"]["messaging.message.receive.latency"]
    [error] = event["exception"]["values"]
    assert ("ValueError", "as asked", "fails") == (error["type"], error["value"], event["transaction"])
    assert ["fails"] == [frame["function"] for frame in error["stacktrace"]["frames"]]
    assert [] == event.get("breadcrumbs", {}).get("values", [])
    assert "4111-1111" not in json.dumps(event)
    assert traced.trail(event="flushed")


def test_each_exception_and_the_arguments_are_reported_if_asked_for(traced, monkeypatch):
    monkeypatch.setenv("EVERY", "yes")
    monkeypatch.setenv("PII", "yes")
    traced.queue.push("fails", {"card": "4111-1111"}, options={"maxTries": 2})
    traced.work(*FLAGS)
    events = sent(traced, "event")

    assert [1, 2] == [event["contexts"]["job"]["attempt"] for event in events]
    assert [{"data": {"card": "4111-1111"}}] * 2 == [event["contexts"]["arguments"] for event in events]
    assert "4111-1111" in json.dumps(events[0]["exception"]["values"][0]["stacktrace"]["frames"][0]["vars"])


def test_a_trace_of_laravel_goes_on(traced):
    traced.queue.push_raw(OF_PHP % (b"first", b"first"))
    traced.work(*FLAGS)
    first, *_ = sent(traced, "transaction")
    trace = first["contexts"]["trace"]

    assert (TRACE, SPAN) == (trace["trace_id"], trace["parent_span_id"])
    assert 1000 < trace["data"]["messaging.message.receive.latency"]


def test_a_dispatch_writes_the_keys_that_laravel_reads(traced):
    warm.run([sys.executable, "-c", PRODUCER], env=traced.env(), cwd=traced.path, check=True)
    [lease] = traced.queue.stores.queue.reserve(["default"], 1, 1).leases
    fields = json.loads(lease.receipt)
    [checkout] = sent(traced, "transaction")
    [publish] = checkout["spans"]

    assert f"{publish['trace_id']}-{publish['span_id']}-1" == fields["sentry_trace_parent_data"]
    assert f"sentry-trace_id={publish['trace_id']}" in fields["sentry_baggage_data"].split(",")
    assert isinstance(fields["sentry_publish_time"], float)


@pytest.mark.bad_input("B159")
def test_odd_keys_are_ignored_and_the_job_runs(traced):
    for number, value in enumerate(["0" * 1_000_000, ["x"], {}, "x-y-z", True]):
        keys = {"sentry_trace_parent_data": value, "sentry_baggage_data": value, "sentry_publish_time": "never"}
        raw = {"id": f"{number}", "job": "fails", "maxTries": 1, "data": [], **keys, "attempts": 0}
        traced.queue.push_raw(json.dumps(raw).encode())
    log = traced.work(*FLAGS).stderr

    assert (5, 5) == (len(sent(traced, "event")), log.count("job failed"))
    assert "hook raised" not in log


@pytest.mark.fault("F84")
def test_the_steward_reports_an_attempt_that_was_killed_once_and_with_its_stack(traced):
    traced.queue.push_raw(OF_PHP % (b"killed", b"killed"))
    with traced.pool(*FLAGS, "--max-crashes", "1", "--workers", "1") as pool:
        eventually(lambda: "job failed" in pool.log())
        traced.queue.push("killed", {"how": "hang"}, options={"timeout": 1, "maxTries": 1})
        eventually(lambda: "job timed out" in pool.log())
    lost, timed_out = sent(traced, "event")

    assert TRACE == lost["contexts"]["trace"]["trace_id"]
    assert [["queuepool", "JobLost", "killed"], ["queuepool", "JobTimedOut", "killed"]] == [
        event["fingerprint"] for event in (lost, timed_out)
    ]
    assert "SIGKILL" in lost["exception"]["values"][0]["value"]
    assert "killed (attempt 1) ran past its deadline" == timed_out["exception"]["values"][0]["value"]
    assert "in hang_in_c" in timed_out["attached"][0]
    assert [[], []] == [event.get("breadcrumbs", {}).get("values", []) for event in (lost, timed_out)]


def test_jobs_that_fail_side_by_side_have_each_its_own_scope_and_trace(traced):
    for order in range(4):
        traced.queue.push("beside", {"order": order})
    with traced.pool(*FLAGS, "--workers", "1", "--concurrency", "10"):
        eventually(lambda: 4 == len(sent(traced, "event")) == len(sent(traced, "transaction")))
    events, transactions = sent(traced, "event"), sent(traced, "transaction")
    values = [event["exception"]["values"][0]["value"] for event in events]

    assert [f"order {order}" for order in range(4)] == sorted(values)
    assert [[value] * 3 for value in values] == [
        [crumb["message"] for crumb in event["breadcrumbs"]["values"]] for event in events
    ]
    spans = {event["contexts"]["trace"]["span_id"] for event in events}
    assert 4 == len(spans)
    assert spans == {one["contexts"]["trace"]["span_id"] for one in transactions}
