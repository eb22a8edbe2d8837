"""``php(...)``: the payload that Laravel's workers get of a member, and calls that are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from queuepool import Flow, chain, job, php, result
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.jobs.client import Queue
from queuepool.jobs.composing import flow_of
from queuepool.jobs.flows import encoded
from queuepool.payload.envelope import OBJECT_JOB
from queuepool.payload.members import FLOW
from queuepool.payload.php_unserialize import parse_object
from queuepool.testing import run_now
from tests.support.each import each

SHIP = "App\\Jobs\\Ship"
MEMBER = {FLOW: f"{'A' * 22}:3r"}


shipped: list[object] = []


@job(SHIP)
def ship(order: int) -> str:
    shipped.append(order)
    return f"parcel {order}"


@job("php_calls.weigh")
def weigh(parcel: str) -> int:
    shipped.append(parcel)
    return len(parcel)


@pytest.fixture
def queue() -> Iterator[Queue]:
    with closing(queue_of("python")) as found:
        yield found


def queue_of(reports: str) -> Queue:
    return Queue(ConnectionSettings(flow_reports=reports, app_key=b"k" * 32))


def test_laravel_gets_the_object_and_where_to_report_its_end(queue):
    call = php(SHIP, {"order": 7, "note": None}, protected=["note"], options={"tries": 3, "backoff": [1, 5]})
    terms, raw = encoded(queue, call, MEMBER)
    payload = json.loads(raw)

    assert "default" == terms.queue
    assert ("App\\Queue\\QueuepoolMember@call", SHIP) == (payload["job"], payload["displayName"])
    assert (3, "1,5", MEMBER[FLOW]) == (payload["maxTries"], payload["backoff"], payload[FLOW])
    data = payload["data"]
    assert (SHIP, {"flow": MEMBER[FLOW], "queue": "python"}) == (data["commandName"], data["qpReport"])
    assert {"order": 7, "note": None} == parse_object(data["command"]).properties


def test_what_is_no_member_is_a_plain_object_job(queue):
    payload = json.loads(encoded(queue, php(SHIP, {"order": 7}), {})[1])

    assert (OBJECT_JOB, {"commandName", "command"}) == (payload["job"], payload["data"].keys())


def test_an_encrypted_member_is_encrypted_with_the_key_of_the_connection(queue):
    call = php(SHIP, {"order": 7}, encrypted=True)

    assert not json.loads(encoded(queue, call, MEMBER)[1])["data"]["command"].startswith("O:")
    with (
        closing(Queue(ConnectionSettings(flow_reports="python"))) as keyless,
        pytest.raises(ConfigError, match="app_key"),
    ):
        encoded(keyless, call, MEMBER)


def test_a_flow_with_it_needs_a_queue_for_reports_which_laravel_does_not_serve(queue):
    def push(to: Queue, **about: str) -> None:
        flow = Flow()
        flow.add(php(SHIP, **about))
        flow.push_to(to)

    with closing(Queue(ConnectionSettings())) as without, pytest.raises(ValueError, match="set flow_reports"):
        push(without)
    with pytest.raises(ValueError, match="Laravel's workers would take the reports too"):
        push(queue, queue="python")


def test_a_handler_of_the_class_stands_for_it_in_tests():
    with run_now():
        found = flow_of(chain(php(SHIP, {"order": 7}, queue="php"), weigh.call)).push_to(queue_of("python"))
        assert ("2 of 2 done", [7, "parcel 7"]) == (found.flow().progress, shipped)


def test_it_takes_no_results():
    flow = Flow()
    weight = flow.add(weigh.call(""))
    for properties in ({"weight": result(weight)}, {"of": {"weight": [result(weight)]}}):
        with pytest.raises(TypeError, match="a job in PHP takes no results"):
            php(SHIP, properties)


@each(
    "wrong",
    [
        ({"class_name": "App\\Jobs\\"}, ValueError),
        ({"class_name": 7}, ValueError),
        ({"properties": [7]}, TypeError),
        ({"properties": {"order": object()}}, ValueError),
        ({"options": {"retries": 3}}, ValueError),
        ({"options": {"tries": "many"}}, ValueError),
        ({"queue": "a b\n"}, ValueError),
        ({"delay": -1e300}, ValueError),
    ],
)
def test_a_wrong_call_is_refused_where_it_is_written(wrong):
    arguments, error = wrong
    with pytest.raises(error):
        php(**{"class_name": SHIP, **arguments})
