"""OpenTelemetry's SDK in real producers, workers and stewards: one trace through all that follows from a dispatch."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

import pytest

from tests.contrib.conftest import LIBRARIES
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.pools import Site

pytestmark = pytest.mark.libraries(*LIBRARIES)

JOBS = """
import asyncio, os, signal
from opentelemetry import baggage
from queuepool import current, job
from tests.support.poolapp import hang_in_c, note

@job("first")
def first():
    note(event="job", job="first", tenant=baggage.get_baggage("tenant"))
    second.dispatch()

@job("third")
async def third():
    await asyncio.sleep(0.2)
    await releases.adispatch()

@job("second", tries=2, backoff=0)
async def second():
    note(event="job", job="second", tenant=baggage.get_baggage("tenant"))
    if current().attempts == 1:
        raise ValueError("as asked")

@job("releases", tries=3)
def releases():
    if current().attempts == 1:
        current().release(0)

@job("fails", tries=1)
def fails():
    raise ValueError("as asked")

@job("killed", tries=1, timeout=30)
def killed(how="kill"):
    note(event="job", job="killed")
    os.kill(os.getpid(), signal.SIGKILL) if how == "kill" else hang_in_c()
"""
PRODUCER = """
import tests.support.spans, queuepool.contrib.otel, traced
from opentelemetry import baggage, context, trace

context.attach(baggage.set_baggage("tenant", {tenant}))
with trace.get_tracer("shop").start_as_current_span("checkout"):
    {push}
"""
#: as opentelemetry-php-contrib's hook of createPayloadArray leaves a payload: TraceContextPropagator::inject($payload)
OF_PHP = (
    b'{"uuid":"8f1d5ad4-7f6a-4d4b-9a53-0e2b6f0a3c11","displayName":"%b","job":"%b","maxTries":null,'
    b'"maxExceptions":null,"failOnTimeout":false,"backoff":null,"timeout":null,"data":[],"createdAt":1763889000,'
    b'"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",'
    b'"tracestate":"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7","id":"php","attempts":0,"delay":null}'
)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FLAGS = ("--modules", "traced", "--listeners", "tests.support.spans,queuepool.contrib.otel")


def produce(site: Site, push: str, tenant: str = "'7'") -> str:
    """Run a producer, and return what it writes to standard error."""
    program = PRODUCER.format(push=push, tenant=tenant)
    done = warm.run([sys.executable, "-c", program], env=site.env(), cwd=site.path, check=True, capture_output=True)
    return done.stderr.decode()


def spans(site: Site, name: str = "") -> list[dict[str, Any]]:
    """Those of the jobs of this name, in the order of their beginning."""
    found = [span for span in site.trail(event="span") if not name or span["about"].get("queuepool.job") == name]
    return sorted(found, key=lambda span: span["began"])


def kind_of(site: Site, kind: str, *names: str) -> list[dict[str, Any]]:
    """Those of this kind, of the jobs of these names."""
    return [span for name in names for span in spans(site, name) if span["kind"] == kind]


def test_one_trace_leads_from_a_dispatch_through_jobs_that_dispatch_and_links_to_the_retry(traced):
    produce(traced, "traced.first.dispatch()")
    traced.work(*FLAGS)
    [checkout] = [span for span in spans(traced) if span["name"] == "checkout"]
    create, process = spans(traced, "first")
    create_second, process_second, retry = spans(traced, "second")

    chain = [checkout, create, process, create_second, process_second]
    assert 1 == len({span["trace"] for span in chain})
    assert [span["span"] for span in chain[:-1]] == [span["parent"] for span in chain[1:]]
    assert ["create default", "process default"] * 2 == [span["name"] for span in chain[1:]]
    assert ["PRODUCER", "CONSUMER"] * 2 == [span["kind"] for span in chain[1:]]
    assert ("", [checkout["trace"]], 2) == (retry["parent"], retry["links"], retry["about"]["queuepool.attempt"])
    assert retry["trace"] != checkout["trace"]
    assert ["UNSET", "ERROR", "UNSET"] == [span["status"] for span in (process, process_second, retry)]
    assert ("ValueError", "ValueError: as asked") == (process_second["about"]["error.type"], process_second["why"])
    assert "in second" in process_second["events"][0]["exception.stacktrace"]
    assert {"7"} == {line["tenant"] for line in traced.trail(event="job")}
    assert process["about"]["messaging.message.id"] == create["about"]["messaging.message.id"]


def test_a_trace_of_php_goes_on_in_python_and_in_the_payload_for_php(traced):
    traced.queue.push_raw(OF_PHP % (b"releases", b"releases"))
    traced.work(*FLAGS)
    first, released = spans(traced, "releases")

    assert (TRACE, SPAN, True) == (first["trace"], first["parent"], first["about"]["messaging.message.released"])
    assert ("", [TRACE]) == (released["parent"], released["links"])
    assert "8f1d5ad4-7f6a-4d4b-9a53-0e2b6f0a3c11" == first["about"]["messaging.message.id"]


def test_php_reads_what_a_dispatch_writes(traced):
    """By the form that TraceContextPropagator::extract takes apart: its version, ids and flags."""
    produce(traced, "traced.first.dispatch()")
    [lease] = traced.queue.stores.queue.reserve(["default"], 1, 1).leases
    fields = json.loads(lease.receipt)
    [create] = [span for span in spans(traced) if span["kind"] == "PRODUCER"]

    version, trace, span, flags = fields["traceparent"].split("-")
    assert ("00", create["trace"], create["span"], True) == (version, trace, span, bool(int(flags, 16) & 1))
    assert re.fullmatch("[0-9a-f]{2}", flags)
    assert "tenant=7" == fields["baggage"]


def test_failed_and_retry_keep_the_keys(traced):
    traced.queue.push_raw(OF_PHP % (b"fails", b"fails"))
    traced.work(*FLAGS)
    traced.run("retry", "all", *traced.where)
    traced.work(*FLAGS)

    assert [(TRACE, SPAN)] * 2 == [(span["trace"], span["parent"]) for span in spans(traced, "fails")]


ODD = {
    "1 MB": {"traceparent": "0" * 1_000_000, "tracestate": "a=" * 500_000, "baggage": "a=b," * 250_000},
    "an array": {"traceparent": ["00-" + "1" * 32], "tracestate": {}, "baggage": 5},
    "zeros": {"traceparent": f"00-{'0' * 32}-{'0' * 16}-00"},
    "the last version": {"traceparent": f"ff-{'1' * 32}-{'1' * 16}-01"},
    "no hex": {"traceparent": f"00-{'x' * 32}-{'1' * 16}-01"},
}


@pytest.mark.bad_input("B159")
def test_odd_keys_are_ignored_and_the_job_runs(traced):
    for name, keys in ODD.items():
        raw = {"id": name, "job": "fails", "maxTries": 1, "data": [], **keys, "attempts": 0}
        traced.queue.push_raw(json.dumps(raw).encode())
    log = traced.work(*FLAGS).stderr

    assert [("", [])] * len(ODD) == [(span["parent"], span["links"]) for span in spans(traced, "fails")]
    assert len(ODD) == log.count("job failed")
    assert "hook raised" not in log


@pytest.mark.bad_input("B160")
def test_baggage_that_is_too_long_is_cut_to_whole_members(traced):
    members = "'7')); [context.attach(baggage.set_baggage(f'k{n}', 1000 * 'x')) for n in range(1_000)]; str(("
    log = produce(traced, "traced.first.bulk([{}, {}])", tenant=members)
    [lease, _] = traced.queue.stores.queue.reserve(["default"], 1, 2).leases
    found = json.loads(lease.receipt)["baggage"].split(",")

    assert "tenant=7" == found[0]
    assert [f"k{n}={1000 * 'x'}" for n in range(3)][: len(found) - 1] == found[1:] != []
    assert 1 == log.count("otel: baggage is longer than the 3072 characters that a job can carry")


@pytest.mark.fault("F84")
def test_the_steward_writes_the_span_of_an_attempt_that_was_killed(traced):
    traced.queue.push_raw(OF_PHP % (b"killed", b"killed"))
    with traced.pool(*FLAGS, "--max-crashes", "1", "--workers", "1") as pool:
        eventually(lambda: "job failed" in pool.log())
        traced.queue.push("killed", {"how": "hang"}, options={"timeout": 1, "maxTries": 1})
        eventually(lambda: "job timed out" in pool.log())
    lost, timed_out = spans(traced, "killed")

    assert [(TRACE, SPAN, "ERROR"), (timed_out["trace"], "", "ERROR")] == [
        (span["trace"], span["parent"], span["status"]) for span in (lost, timed_out)
    ]
    assert ("queuepool.errors.WorkerDied", "queuepool.errors.TimedOut") == (
        lost["about"]["error.type"], timed_out["about"]["error.type"]
    )  # fmt: skip
    assert "SIGKILL" in lost["why"]
    assert "in hang_in_c" in timed_out["events"][0]["exception.stacktrace"]
    assert 0.5 <= timed_out["ended"] - timed_out["began"]
    [start] = [line["at"] for line in traced.trail(event="job")][:1]
    assert lost["began"] <= start <= lost["ended"]


@pytest.mark.thorough("without it, test_a_trace_of_php_goes_on_in_python_and_in_the_payload_for_php")
def test_with_preload_the_sdk_is_set_up_in_each_worker(traced, monkeypatch):
    monkeypatch.setenv("SPANS", "later")
    (traced.path / "later.py").write_text(
        "from queuepool import on\nfrom queuepool.events import WorkerStarting\nfrom tests.support import spans\n"
        "on(WorkerStarting)(lambda event: spans.set_up())\n"
    )
    traced.queue.push_raw(OF_PHP % (b"fails", b"fails"))
    with traced.pool(*FLAGS[:2], "--listeners", "later,queuepool.contrib.otel", "--preload") as pool:
        eventually(lambda: "job failed" in pool.log())
    [span] = spans(traced, "fails")

    assert (TRACE, SPAN) == (span["trace"], span["parent"])
    assert "threads" not in pool.log()


@pytest.mark.fault("F85")
def test_a_worker_that_leaves_does_not_wait_long_for_a_collector(traced, monkeypatch):
    monkeypatch.setenv("COLLECTOR", "away")
    traced.queue.push_raw(OF_PHP % (b"fails", b"fails"))
    began = time.monotonic()
    traced.work(*FLAGS)

    assert time.monotonic() - began < 30
    assert 0 == traced.queue.size()


@pytest.mark.bad_input("B161")
@pytest.mark.parametrize(("name", "package"), [("otel", "opentelemetry"), ("sentry", "sentry_sdk")])
def test_without_its_package_the_start_names_the_extra(site, name, package):
    (site.path / "hidden.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    done = site.work("--listeners", f"hidden,queuepool.contrib.{name}", check=False)

    assert 1 == done.returncode
    assert f"it needs pip install 'queuepool-worker[{name}]'" in done.stderr


def test_of_jobs_side_by_side_each_has_its_own_span_around_what_it_dispatches(traced):
    for _ in range(3):
        traced.queue.push("third")
    traced.queue.push("first")  # in a thread
    with traced.pool(*FLAGS, "--workers", "1", "--concurrency", "10") as pool:
        eventually(lambda: 4 == len(re.findall("job done .* job=(?:first|third) ", pool.log())))
    parents = {span["span"] for span in kind_of(traced, "CONSUMER", "third", "first")}
    created = kind_of(traced, "PRODUCER", "releases", "second")

    assert 4 == len(parents) == len(created)
    assert parents == {span["parent"] for span in created}
