"""Context: what follows a request into its jobs, from PHP, in Python, and on into the jobs that they dispatch."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool import context, current, job
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import JobError
from queuepool.events import JobFailed
from queuepool.jobs.client import Queue
from queuepool.jobs.context import running_data
from queuepool.jobs.current_job import Current, set_current
from queuepool.log.formats import fields_of, line_of
from queuepool.payload.context import Context, texts_of
from queuepool.payload.envelope import CONTEXT, Payload, decode
from queuepool.payload.php_unserialize import PhpDataRefused, PhpObject
from queuepool.payload.signing import Signer
from queuepool.settlement.facts import facts_of
from tests.laravel.test_php_serialization import php
from tests.support.eventually import eventually
from tests.support.pools import Site

#: as Log/Context/Repository.php (13.x) dehydrates it in a unique job
OF_LARAVEL: dict[str, dict[str, str]] = {
    "data": {"trace_id": 's:5:"t-é1";', "user": 'O:8:"stdClass":1:{s:2:"id";i:7;}'},
    "hidden": {
        "token": 's:4:"abcd";',
        "laravel_unique_job_cache_store": 's:5:"redis";',
        "laravel_unique_job_key": 's:30:"laravel_unique_job:App\\Jobs\\X:";',
        "laravel_unique_job_lock_owner": 's:16:"0123456789abcdef";',
    },
}
PASSED_ON = {"data": OF_LARAVEL["data"], "hidden": {"token": 's:4:"abcd";'}}


def payload(identity: str = "a", **fields: Any) -> Payload:
    return decode(json.dumps({"id": identity, "job": "do", "data": [], "attempts": 1, **fields}).encode())


@pytest.fixture
def running() -> Iterator[Current]:
    """A running job that Laravel gave a context."""
    made = Current(payload(**{CONTEXT: OF_LARAVEL}), "default")
    set_current(made)
    yield made
    set_current(None)


@job("context.child")
def child(n: int = 0) -> None: ...


def pushed(queue: Queue, call: Any = None) -> dict[str, Any]:
    """The fields of a job that is dispatched now."""
    (call or child.dispatch)()
    [lease] = queue.stores.queue.reserve(["default"], 1, 1).leases
    queue.stores.queue.delete([lease])
    return dict(json.loads(lease.receipt))


# The running job's


def test_a_job_reads_the_context_that_it_came_with(running):
    found = current().context

    assert {"trace_id": "t-é1", "user": PhpObject("stdClass", {"id": 7})} == found.data
    assert "abcd" == found.hidden["token"]
    assert ("t-é1", "abcd", 5) == (context.get("trace_id"), context.get("token"), context.get("other", 5))


def test_a_job_without_one_has_an_empty_one():
    found = Current(payload(), "default").context

    assert ({}, {}) == (found.data, found.hidden)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)
                    | st.dictionaries(st.sampled_from(["data", "hidden", "x"]), inner)))  # fmt: skip
def test_whatever_stands_in_its_place_is_read_without_an_error(given_context):
    found = Context(given_context)
    assert isinstance({**found.data, **found.hidden}, dict)
    assert {"data", "hidden"} == set(texts_of(given_context))


def test_a_job_passes_it_on_but_for_what_is_of_its_own_lock(running, queue):
    assert PASSED_ON == pushed(queue)[CONTEXT]
    assert PASSED_ON == pushed(queue, lambda: queue.push_object("App\\Jobs\\X", {"n": 1}))[CONTEXT]


def test_a_context_of_nothing_but_the_lock_is_not_passed_on(queue):
    set_current(Current(payload(**{CONTEXT: {"data": [], "hidden": OF_LARAVEL["hidden"]}}), "default"))
    alone = {key: text for key, text in OF_LARAVEL["hidden"].items() if key != "token"}
    set_current(Current(payload(**{CONTEXT: {"data": [], "hidden": alone}}), "default"))
    try:
        assert CONTEXT not in pushed(queue)
    finally:
        set_current(None)


def test_what_a_job_adds_goes_with_the_rest_and_ends_with_the_attempt(running, queue):
    context.add("step", 2)
    context.add("trace_id", "another")
    now = pushed(queue)[CONTEXT]
    set_current(Current(payload(**{CONTEXT: OF_LARAVEL}), "default"))
    next_job = pushed(queue)[CONTEXT]
    set_current(None)

    assert {**PASSED_ON["data"], "step": "i:2;", "trace_id": 's:7:"another";'} == now["data"]
    assert PASSED_ON == next_job
    assert CONTEXT not in pushed(queue)
    assert {} == context.data


def test_threads_of_a_job_see_what_it_came_with(running, queue):
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(pushed(queue)[CONTEXT]))
    thread.start()
    thread.join()

    assert [PASSED_ON] == seen


# Producers


def test_without_context_a_payload_has_no_such_field(queue):
    assert CONTEXT not in pushed(queue)


def test_what_is_added_goes_into_the_payload_as_laravel_reads_it(queue):
    with context.scope(trace_id="t-é1"):
        context.add("user", {"id": 7, "tags": ["a"]})
        context.add("token", "abcd", hidden=True)
        found = pushed(queue)[CONTEXT]

    assert {"trace_id": 's:5:"t-é1";', "token": 's:4:"abcd";'} == {
        "trace_id": found["data"]["trace_id"], "token": found["hidden"]["token"]
    }  # fmt: skip
    read = "echo json_encode(array_map('unserialize', json_decode(stream_get_contents(STDIN), true)));"
    assert {"trace_id": "t-é1", "user": {"id": 7, "tags": ["a"]}} == json.loads(php(read, json.dumps(found["data"])))


def test_a_scope_ends_with_its_block(queue):
    with context.scope(a=1):
        with context.scope(b=2):
            inner = pushed(queue)[CONTEXT]["data"]
        outer = context.data

    assert ({"a": "i:1;", "b": "i:2;"}, {"a": 1}, {}) == (inner, outer, context.data)


def test_tasks_do_not_see_each_others(queue):
    async def one(n: int) -> Any:
        with context.scope(n=n):
            await asyncio.sleep(0)
            return pushed(queue, lambda: child.dispatch(n))[CONTEXT]["data"]

    async def both() -> Any:
        return await asyncio.gather(one(1), one(2))

    assert [{"n": "i:1;"}, {"n": "i:2;"}] == asyncio.run(both())


def test_a_value_that_php_cannot_hold_is_refused_by_name():
    with pytest.raises(PhpDataRefused, match="context 'when': PHP cannot hold this object"):
        context.add("when", object())  # type: ignore[arg-type]
    assert {} == context.data


def test_it_is_inside_of_the_signature(connection: ConnectionSettings):
    key = ("k1", "0123456789abcdef")
    queue = Queue(
        ConnectionSettings(url=connection.url, prefix=connection.prefix, signing="require", signing_keys=(key,))
    )
    with context.scope(trace_id="t"):
        fields = pushed(queue, lambda: queue.push("a.b"))
    forged = json.dumps({**fields, CONTEXT: {"data": {"trace_id": 's:1:"x";'}}, "tags": ["x"]}).encode()
    found = Signer((key,), required=True).verify(forged, "default")
    queue.close()

    assert ({"trace_id": "t"}, {}) == (Context(found.context).data, Current(found, "default").extra)


# The log


def test_events_have_it_in_json_and_not_in_text():
    facts = facts_of(payload(**{CONTEXT: OF_LARAVEL}), "default")
    event = JobFailed(facts, JobError("no"))

    assert {"trace_id": "t-é1", "user": PhpObject("stdClass", {"id": 7})} == fields_of(event)["context"]
    assert ("t-é1" in line_of(event), "abcd" in str(fields_of(event))) == (False, False)
    assert "context" not in fields_of(JobFailed(facts_of(payload(), "default"), JobError("no")))


def test_a_long_value_is_cut_in_the_log():
    long = {"data": {"a": f's:10000:"{"x" * 10000}";', "b": f'a:1:{{i:0;s:10000:"{"y" * 10000}";}}'}}
    found = fields_of(JobFailed(facts_of(payload(**{CONTEXT: long}), "default"), JobError("no")))["context"]

    assert [8192, 8192] == [len(value) for value in found.values()]


@pytest.mark.thorough("the test above cuts a long value; this cuts a thousand")
def test_a_context_of_many_names_is_cut_in_the_log():
    many = {"data": {f"name {number:06}": "i:1;" for number in range(100_000)}}
    long = {"data": {f"{letter * 8000}": f's:8000:"{"x" * 8000}";' for letter in "abcdefgh"}}
    for texts, most in ((many, 3000), (long, 40_000)):
        facts = facts_of(payload(**{CONTEXT: texts}), "default")
        found = fields_of(JobFailed(facts, JobError("no")))

        assert "left out" == found["context"]["…"]
        assert most > len(json.dumps(found["context"]))
        set_current(Current(payload(**{CONTEXT: texts}), "default"))
        assert 65 >= len(running_data())
        set_current(None)


def test_the_applications_lines_have_it_while_a_job_runs(running):
    assert "t-é1" == running_data()["trace_id"]
    set_current(None)
    with context.scope(a=1):
        assert {} == running_data()


APP = """
import logging
from queuepool import context, current, job
from tests.support.poolapp import note

@job("first")
def first():
    logging.getLogger("shop").warning("in first")
    context.add("step", 1)
    second.dispatch()

@job("second")
def second():
    logging.getLogger("shop").warning("in second")
    note(event="second", hidden=context.hidden, extra=current().extra)

@job("plain")
def plain():
    logging.getLogger("shop").warning("in plain")
    note(event="plain", data=context.data)
"""


def test_a_chain_of_jobs_keeps_it_and_its_json_lines_have_it(site: Site, monkeypatch):
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_URL", site.connection.url)
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_PREFIX", site.connection.prefix)
    (site.path / "contextapp.py").write_text(APP)
    site.queue.push_raw(json.dumps({"id": "f", "job": "first", "attempts": 0, CONTEXT: OF_LARAVEL}).encode())
    site.queue.push("plain")
    lines = [json.loads(line) for line in site.work("--modules", "contextapp", "--json").stderr.splitlines()]
    said = {line["message"]: line.get("context") for line in lines if line.get("logger") == "shop"}
    done = {line["job"]: line.get("context") for line in lines if line.get("event") == "JobProcessed"}
    received = {"trace_id": "t-é1", "user": "PhpObject(class_name='stdClass', properties={'id': 7})"}

    assert {"in first": received, "in plain": None, "in second": {**received, "step": 1}} == said
    assert {"first": received, "plain": None, "second": {**received, "step": 1}} == done
    assert [({"token": "abcd"}, {})] == [(line["hidden"], line["extra"]) for line in site.trail(event="second")]
    assert [{}] == [line["data"] for line in site.trail(event="plain")]


def test_the_steward_has_it_in_the_lines_of_a_job_that_died(site: Site):
    data = {"mode": "kill"}
    raw = {"id": "k", "job": "do", "maxTries": 1, "data": data, "attempts": 0, CONTEXT: OF_LARAVEL, "tags": ["App:1"]}
    site.queue.push_raw(json.dumps(raw).encode())
    with site.pool("--json", "--max-crashes", "1") as pool:
        eventually(lambda: '"JobFailed"' in pool.log())
    [line] = [json.loads(line) for line in pool.log().splitlines() if '"JobFailed"' in line]

    assert ("steward", "t-é1", ["App:1"]) == (line["role"], line["context"]["trace_id"], line["tags"])


# What else a payload holds


def test_unknown_fields_of_a_payload_can_be_read():
    horizon = {"type": "job", "tags": ["App\\Models\\User:1"], "silenced": False}
    times = {"createdAt": 1, "pushedAt": "1756800000.1234", "delay": None}
    found = payload(**horizon, **times, maxTries=1, uuid="u", displayName="X", **{CONTEXT: OF_LARAVEL})

    assert horizon == Current(found, "default").extra
    assert ("App\\Models\\User:1",) == Current(found, "default").tags
    assert {} == Current(payload(), "default").extra


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (None, ()),
        ("mail", ()),
        ({"0": "a", "2": "b"}, ("a", "b")),  # PHP's list with a gap
        (["a", 1, None, ["b"], "c"], ("a", "c")),
        (["x" * 200] * 50, ("x" * 128,) * 32),
    ],
)
def test_tags_are_read_as_far_as_they_are_texts_and_bounded(written, read):
    assert read == Current(payload(tags=written), "default").tags
