"""What follows the end of a job: an outcome for Laravel whatever its size, and whoever can read it."""

from __future__ import annotations

import json

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.command import Commands
from queuepool.payload.envelope import CONTEXT, MAX_BYTES, OBJECT_JOB, decode
from queuepool.payload.lease import NOTHING, Ending
from queuepool.payload.php_values import build_command
from queuepool.payload.unique_locks import NAME, OWNER, STORE
from queuepool.settlement.endings import Endings
from tests.support.samples import payload

STEP = "App\\Jobs\\Step"
OUTCOMES = ConnectionSettings(outcomes="outcomes")
SIGNED = ConnectionSettings(outcomes="outcomes", signing="accept", signing_keys=(("k", "x" * 32),))


def step(command: str) -> bytes:
    return payload("a", job=OBJECT_JOB, data={"commandName": STEP, "command": command})


def after(raw: bytes, connection: ConnectionSettings = OUTCOMES) -> Ending:
    return Endings(connection, Commands()).after(decode(raw))


@pytest.mark.thorough("sizes; test_a_finished_step_that_only_its_worker_could_read_has_an_outcome")
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


def test_an_outcome_has_the_surroundings_of_its_job():
    """Laravel's hooks read them when the outcome begins; what it calls and dispatches then inherits them."""
    traced = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "sentry_baggage_data": "sentry-sampled=true"}
    kept = {**traced, "tenant_id": "t7", CONTEXT: {"data": {"trace": 's:1:"T";'}, "hidden": {"user": "i:7;"}}}
    own = {"tags": ["a"], "silenced": False, "type": "job", "deleteWhenMissingModels": True, "delay": 60}
    found = outcome_fields({**kept, **own})

    assert kept == {key: found.get(key) for key in kept}
    assert not {*own, "tracestate"} & set(found) - {"delay"}
    assert None is found["delay"]


def test_an_outcome_does_not_hold_the_lock_of_its_job():
    """What Laravel dispatches next would release it, if it cannot find its models."""
    lock = {STORE: 's:5:"redis";', NAME: 's:1:"n";', OWNER: 's:1:"o";'}
    several = outcome_fields({CONTEXT: {"data": {}, "hidden": {**lock, "user": "i:7;"}}})

    assert {"data": {}, "hidden": {"user": "i:7;"}} == several[CONTEXT]
    assert CONTEXT not in outcome_fields({CONTEXT: {"data": [], "hidden": lock}})


def outcome_fields(fields: dict[str, object]) -> dict[str, object]:
    """The outcome of a step of a chain whose payload has these fields too."""
    raw = json.dumps({**json.loads(step(build_command(STEP, {"chained": ["x"]}))), **fields}).encode()
    outcome = after(raw).outcome
    assert outcome
    return dict(json.loads(outcome.payload))
