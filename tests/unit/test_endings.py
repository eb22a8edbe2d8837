"""What follows the end of a job: an outcome for Laravel whatever its size, and whoever can read it."""

from __future__ import annotations

import json

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.command import Commands
from queuepool.payload.ending import NOTHING, Ending
from queuepool.payload.envelope import MAX_BYTES, OBJECT_JOB, decode
from queuepool.payload.php_serialize import build_command
from queuepool.settlement.endings import Endings
from tests.support.samples import payload

STEP = "App\\Jobs\\Step"
OUTCOMES = ConnectionSettings(outcomes="outcomes")
SIGNED = ConnectionSettings(outcomes="outcomes", signing="accept", signing_keys=(("k", "x" * 32),))


def step(command: str) -> bytes:
    return payload("a", job=OBJECT_JOB, data={"commandName": STEP, "command": command})


def after(raw: bytes, connection: ConnectionSettings = OUTCOMES) -> Ending:
    return Endings(connection, Commands()).after(decode(raw))


@pytest.mark.parametrize("connection", [OUTCOMES, SIGNED])
def test_the_largest_step_of_a_chain_has_an_outcome(connection):
    small = len(step(build_command(STEP, {"chained": ["x"], "text": "x" * 1_000_000})))
    raw = step(build_command(STEP, {"chained": ["x"], "text": "x" * (1_000_000 + MAX_BYTES - small - 1)}))
    assert MAX_BYTES - 2 <= len(raw) <= MAX_BYTES

    outcome = after(raw, connection).outcome
    assert outcome
    assert decode(raw).data["command"] == json.loads(outcome.payload)["data"]["command"]


def test_a_finished_step_that_only_its_worker_could_read_has_an_outcome():
    outcome = after(step("eyJpdiI6")).outcome
    assert outcome
    assert "App\\Queue\\QueuepoolOutcome@succeeded" == json.loads(outcome.payload)["job"]


def test_nothing_follows_a_job_that_is_alone():
    assert NOTHING == after(step(build_command(STEP, {"number": 1, "chained": [], "middleware": []})))
    assert NOTHING == after(payload("a"))


def test_an_outcome_belongs_to_the_trace_of_its_job():
    keys = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "sentry_baggage_data": "sentry-sampled=true"}
    fields = json.loads(step(build_command(STEP, {"chained": ["x"]})))
    outcome = after(json.dumps({**fields, **keys, "tags": ["a"]}).encode()).outcome
    assert outcome
    found = json.loads(outcome.payload)

    assert keys == {key: found.get(key) for key in keys}
    assert not {"tags", "tracestate"} & set(found)
