"""``@on_push``: further keys in every payload, however it is pushed, and none that would do harm."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from queuepool import Queue, job, on_push
from queuepool.config.settings import ConnectionSettings, ScheduleSettings
from queuepool.errors import BadPayload
from queuepool.jobs.current_job import Current
from queuepool.payload import on_push as hooks
from queuepool.payload.signing import Signer
from queuepool.steward.schedule import ScheduledJob

KEY = ("k1", "0123456789abcdef")


@job("stamped", encrypted=False)
def stamped(n: int = 0) -> None: ...


@pytest.fixture(autouse=True)
def unhooked(monkeypatch) -> None:
    """No hook outlives its test."""
    monkeypatch.setattr(hooks, "_HOOKS", [])


def payloads(queue: Queue) -> list[dict[str, Any]]:
    """What waits in the queue, which is then empty."""
    leases = queue.stores.queue.reserve(["default"], 1, 9).leases
    queue.stores.queue.delete(leases)
    return [json.loads(lease.receipt) for lease in leases]


def numbered() -> list[tuple[str, str]]:
    """A hook that numbers the payloads; returns the names and queues that it was called with."""
    calls: list[tuple[str, str]] = []

    @on_push
    def number(name: str, queue: str, fields: Mapping[str, Any]) -> Mapping[str, object]:
        calls.append((name, queue))
        return {"number": len(calls), "of": fields["uuid"]}

    return calls


WAYS: dict[str, Callable[[Queue], object]] = {
    "dispatch": lambda queue: stamped.dispatch(1),
    "bulk": lambda queue: stamped.bulk([{"n": 1}]),
    "adispatch": lambda queue: asyncio.run(stamped.adispatch(1)),
    "abulk": lambda queue: asyncio.run(stamped.using().abulk([{"n": 1}])),
    "push": lambda queue: queue.push("stamped"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_push_gets_the_keys(queue, way):
    calls = numbered()
    WAYS[way](queue)
    [found] = payloads(queue)

    assert (1, found["uuid"], [("stamped", "default")]) == (found["number"], found["of"], calls)
    assert ["delay", "attempts"] == list(found)[-2:]


def test_each_job_of_a_bulk_has_its_own(queue):
    numbered()
    stamped.bulk([{"n": 1}, {"n": 2}])

    assert [1, 2] == [found["number"] for found in payloads(queue)]


def test_an_object_job_is_named_by_its_class(queue):
    calls = numbered()
    queue.push_object("App\\Jobs\\Mail", {"n": 1})

    assert [("App\\Jobs\\Mail", "default")] == calls


def test_raw_bytes_stay_as_they_are(queue):
    calls = numbered()
    queue.push_raw(b'{"id":"a","job":"stamped","attempts":0}')

    assert ({"id": "a", "job": "stamped", "attempts": 1}, []) == (payloads(queue)[0], calls)


def test_the_keys_are_signed_and_the_job_reads_them_as_extra(connection):
    numbered()
    queue = Queue(
        ConnectionSettings(url=connection.url, prefix=connection.prefix, signing="require", signing_keys=(KEY,))
    )
    queue.push("stamped")
    [fields] = payloads(queue)
    queue.close()
    found = Signer((KEY,), required=True).verify(json.dumps({**fields, "number": 7}).encode(), "default")

    assert {"number": 1, "of": fields["uuid"]} == Current(found, "default").extra


def test_a_hook_sees_the_data_before_they_are_encrypted_and_keys_of_hooks_before_it(connection):
    seen: list[Mapping[str, Any]] = []
    on_push(lambda name, queue, fields: {"tenant": 7})
    on_push(lambda name, queue, fields: seen.append(fields))
    settings = ConnectionSettings(url=connection.url, prefix=connection.prefix, app_key=32 * b"k")
    queue = Queue(settings)
    queue.push("stamped", {"n": 1}, encrypted=True)
    [found] = payloads(queue)
    queue.close()

    assert ({"n": 1}, 7, 7) == (seen[0]["data"], seen[0]["tenant"], found["tenant"])
    assert {"n": 1} != found["data"]
    with pytest.raises(TypeError):
        seen[0]["data"] = 1  # type: ignore[index]


BAD: dict[str, tuple[object, str]] = {
    "a key of Laravel's": ({"job": "other"}, "'job' is Laravel's or queuepool's own"),
    "attempts": ({"attempts": 3}, "'attempts' is Laravel's"),
    "a key of its future": ({"illuminate:new": 1}, "is Laravel's or queuepool's own"),
    "a key of ours": ({"qpTrack": 3}, "is Laravel's or queuepool's own"),
    "the signature": ({"qp": {}}, "is Laravel's or queuepool's own"),
    "what a signature holds": ({"queue": "other"}, "is Laravel's or queuepool's own"),
    "no text as a key": ({5: 1}, "5 is not a key"),
    "no JSON": ({"a": object()}, "the value of 'a': "),
    "not a number": ({"a": float("nan")}, "the value of 'a': "),
    "too much": ({"a": "x" * 8192}, "a take 8200 bytes, at most 8192"),
    "no mapping": ([("a", 1)], "returned list: it must return a mapping or None"),
}


@pytest.mark.bad_input("B158")
@pytest.mark.parametrize(("given", "words"), BAD.values(), ids=BAD)
def test_keys_that_would_do_harm_are_refused_and_nothing_is_pushed(queue, given, words):
    @on_push
    def bad(name, queue, fields):
        return given

    with pytest.raises((ValueError, TypeError)) as refused:
        stamped.bulk([{"n": 1}, {"n": 2}])

    assert words in str(refused.value)
    assert "on_push" in str(refused.value)
    assert not isinstance(refused.value, BadPayload)
    assert 0 == queue.size()


@pytest.mark.bad_input("B158")
def test_keys_of_all_hooks_are_counted_together(queue):
    on_push(lambda name, queue, fields: {"a": "x" * 5000})
    on_push(lambda name, queue, fields: {"b": "x" * 5000})

    with pytest.raises(ValueError, match="@on_push: a, b take 10015 bytes, at most 8192 are allowed in all"):
        stamped.dispatch()
    assert 0 == queue.size()


def test_what_a_hook_raises_the_dispatch_raises(queue):
    @on_push
    def broken(name, queue, fields):
        raise LookupError("no tenant")

    with pytest.raises(LookupError, match="no tenant"):
        stamped.dispatch()
    assert 0 == queue.size()


@pytest.mark.bad_input("B157")
def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="@on_push takes a function, not 5"):
        on_push(5)  # type: ignore[type-var]


# Schedules


def scheduled(connection: ConnectionSettings) -> ScheduledJob:
    return ScheduledJob(ScheduleSettings(name="nightly", connection=connection, job="stamped", every=60))


def test_a_schedules_job_gets_the_keys_and_its_check_calls_no_hook(connection):
    calls = numbered()
    made = scheduled(connection)
    assert [] == calls
    payload = json.loads(made.due(60, 61.0).payload)

    assert (1, [("stamped", "default")]) == (payload["number"], calls)


@pytest.mark.fault("F86")
def test_a_schedules_job_is_pushed_even_if_a_hook_raises(connection, caplog):
    on_push(lambda name, queue, fields: {"job": 1})
    payload = json.loads(scheduled(connection).due(60, 61.0).payload)

    assert "stamped" == payload["job"]
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("schedule nightly: its job is pushed without the keys of @on_push: ValueError: ")
