"""A worker that dies at any stage of a step: Laravel learns of its end once, and its lock is not left behind."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from queuepool.config.urls import kind_of
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, Envelope, encode
from queuepool.payload.lease import Lock
from queuepool.payload.php_values import build_command
from queuepool.payload.unique_locks import claimed
from tests.support.chains import OUTCOMES, STEP, UNIQUE, numbers, restart_key, settings
from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.pools import Site
from tests.support.samples import new_jobs

pytestmark = pytest.mark.every_store("both")

#: kills its worker when the step has succeeded and is not settled yet
DIES_DONE = """
import os, signal
from queuepool import on
from queuepool.events import JobProcessed

@on(JobProcessed)
def die(event):
    os.kill(os.getpid(), signal.SIGKILL)
"""
DIES_RUNNING = f"""
import os, signal, time
from tests.support.poolapp import note
from queuepool import job

@job({STEP!r})
def step(number, fails=False):
    note(event="step", number=number)
    os.kill(os.getpid(), signal.SIGKILL)

@job({UNIQUE!r}, timeout=4)
def unique(number):
    note(event="step", number=number)
    while True:
        time.sleep(1)
"""


def outcomes(site: Site) -> list[dict[str, Any]]:
    """The outcomes that wait for Laravel."""
    store = site.queue.stores.queue
    return [json.loads(lease.receipt) for lease in store.reserve(["outcomes"], store.join(), 10).leases]


def test_a_worker_that_dies_before_it_settles_a_finished_step_leaves_it_to_the_steward(
    steps: Site, laravel: Peer
) -> None:
    (steps.path / "dies.py").write_text(DIES_DONE)
    laravel.run("chain", "2", queue="steps")
    with steps.pool("--queue", "steps", "--modules", "steps,dies", config=settings(steps, OUTCOMES)) as pool:
        eventually(lambda: 1 == steps.queue.size("outcomes"))
        eventually(lambda: "process died role=worker" in pool.log())
    assert [1] == numbers(steps)
    [outcome] = outcomes(steps)
    assert "App\\Queue\\QueuepoolOutcome@succeeded" == outcome["job"]
    assert [0, 0] == [steps.queue.size("steps"), steps.queue.stores.failed.count()]


def test_a_step_that_dies_with_its_worker_for_good_is_lost_to_laravel_once(steps: Site, laravel: Peer) -> None:
    (steps.path / "steps.py").write_text(DIES_RUNNING)
    laravel.run("chain", "2", queue="steps")
    config = settings(steps, OUTCOMES, "[pool]", "max_crashes = 1")
    with steps.pool("--queue", "steps", "--modules", "steps", config=config):
        eventually(lambda: 1 == steps.queue.stores.failed.count())
    [outcome] = outcomes(steps)
    assert "App\\Queue\\QueuepoolOutcome@lost" == outcome["job"]
    assert "its worker died" in outcome["data"]["error"]
    assert [1] == numbers(steps)


def push_unique(site: Site, number: int) -> bool:
    """As a dispatch by Laravel 13.24: its lock is named in the payload's context."""
    lock = Lock(f"laravel_unique_job:{UNIQUE}:{number}", secrets.token_hex(8), 3600.0)
    data = {"commandName": UNIQUE, "command": build_command(UNIQUE, {"number": number})}
    context = claimed(None, lock, kind_of(site.connection.url))
    _, raw = encode(OBJECT_JOB, data, Envelope(display_name=UNIQUE, created_at=0, extra={CONTEXT: context}))
    assert CONTEXT.encode() in raw
    return bool(site.queue.stores.queue.push("steps", new_jobs(raw), 0.0, lock))


@pytest.fixture
def at_prefix(steps: Site) -> Iterator[Site]:
    """A queue whose locks have Laravel's cache prefix."""
    with closing(Queue(replace(steps.connection, restart_key=restart_key(steps)))) as queue:
        yield replace(steps, queue=queue)


@pytest.mark.thorough("that of a job whose worker died is released below")
def test_the_lock_of_a_job_that_timed_out_is_released_by_the_steward(at_prefix: Site) -> None:
    (at_prefix.path / "steps.py").write_text(DIES_RUNNING)
    assert push_unique(at_prefix, 7)
    assert not push_unique(at_prefix, 7)
    with at_prefix.pool("--queue", "steps", "--modules", "steps", config=settings(at_prefix, OUTCOMES)):
        eventually(lambda: 1 == at_prefix.queue.stores.failed.count())
        assert [7] == numbers(at_prefix)
    assert push_unique(at_prefix, 7)


def test_the_lock_of_a_job_whose_worker_died_when_it_was_done_is_released_by_the_steward(at_prefix: Site) -> None:
    (at_prefix.path / "dies.py").write_text(DIES_DONE)
    assert push_unique(at_prefix, 7)
    with at_prefix.pool("--queue", "steps", "--modules", "steps,dies", config=settings(at_prefix, OUTCOMES)) as pool:
        eventually(lambda: [7] == numbers(at_prefix) and "process died role=worker" in pool.log())
        eventually(lambda: 0 == at_prefix.queue.size("steps"))
    assert push_unique(at_prefix, 7)


def test_a_job_does_not_release_the_lock_that_it_inherited(at_prefix: Site) -> None:
    assert push_unique(at_prefix, 7)
    [parent] = at_prefix.queue.stores.queue.reserve(["steps"], at_prefix.queue.stores.queue.join(), 1).leases
    inherited = json.loads(parent.receipt)[CONTEXT]
    data = {"commandName": STEP, "command": build_command(STEP, {"number": 1})}
    _, raw = encode(OBJECT_JOB, data, Envelope(display_name=STEP, created_at=0, extra={CONTEXT: inherited}))
    at_prefix.queue.push_raw(raw, queue="steps")
    with at_prefix.pool("--queue", "steps", "--modules", "steps", config=settings(at_prefix, OUTCOMES)):
        eventually(lambda: [1] == numbers(at_prefix))
    assert not push_unique(at_prefix, 7)
