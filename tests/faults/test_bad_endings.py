"""Odd chains, batches and unique locks, and an outcome that cannot be pushed: no job is lost, and none stays unsaid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import create_engine

from queuepool.config.urls import kind_of
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, Envelope, encode
from queuepool.payload.lease import Lock
from queuepool.payload.php_values import MAX_VALUES, PhpObject, build_command, serialize
from queuepool.payload.unique_locks import NAME, claimed, name_of
from queuepool.stores.sql.tables import USUAL
from tests.support.drivers import DATABASES, site_at, site_on
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs

pytestmark = pytest.mark.every_store("steps")

STEP = "App\\Jobs\\Step"
HANDLER = f"""
from tests.support.poolapp import note
from queuepool import job

@job({STEP!r}, skip_if_cancelled=True)
def step(number):
    note(event="step", number=number)
"""
ODD_NAMES = ["", "é\0\x01", "l\0a\0r\0a\0v\0e\0l\0", "x" * 300, "💥"]
#: the next step of a chain, as its command has it
NEXT = build_command(STEP, {"number": 2})


@pytest.fixture(params=["redis", *DATABASES])
def steps(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A store of each kind, and a handler for the steps; there is no batch."""
    (tmp_path / "steps.py").write_text(HANDLER)
    USUAL.job_batches.create(create_engine(batches_url(tmp_path)))
    with site_on(request.param, request) as site:
        yield site


def push(site: Site, command: str, context: Any = None) -> None:
    data = {"commandName": STEP, "command": command}
    _, raw = encode(
        OBJECT_JOB, data, Envelope(display_name=STEP, created_at=0, extra={CONTEXT: context} if context else {})
    )
    site.queue.push_raw(raw, queue="steps")


def run(site: Site, lease: int = 90) -> list[str]:
    """Run the steps that wait; returns the lines that ask somebody to act, but for the handler's own errors."""
    config = f"[connection]\noutcomes = outcomes\nbatches_url = {batches_url(site.path)}\n"
    (site.path / "pool.ini").write_text(f"{config}retry_after = {lease}\n[pool]\ntimeout = {lease // 2}\n")
    done = site.work("-c", str(site.path / "pool.ini"), "--queue", "steps", "--modules", "steps")
    lines = [line for line in done.stderr.splitlines() if " WARNING " in line or " ERROR " in line]
    return [line for line in lines if "job raised" not in line]


def batches_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'batches.db'}"


def numbers(site: Site) -> list[int]:
    return [line["number"] for line in site.trail(event="step")]


def outcome(site: Site) -> dict[str, Any]:
    """The only one that waits for Laravel."""
    store = site.queue.stores.queue
    [lease] = store.reserve(["outcomes"], store.join(), 10).leases
    found: dict[str, Any] = json.loads(lease.receipt)
    return found


@pytest.mark.bad_input("B105")
def test_a_chain_of_ten_thousand_steps_goes_on_with_every_byte_of_it(steps: Site) -> None:
    command = build_command(STEP, {"number": 1, "chained": [NEXT] * 10_000})
    push(steps, command)

    assert [] == run(steps)
    assert [1] == numbers(steps)
    assert command == outcome(steps)["data"]["command"]
    assert 0 == steps.queue.size("steps")


@pytest.mark.bad_input("B105")
def test_a_chain_of_too_many_values_fails_in_one_line_and_laravel_learns_of_it(steps: Site) -> None:
    command = build_command(STEP, {"number": 1, "chained": [0] * MAX_VALUES})
    push(steps, command)

    [line] = run(steps)
    assert "more than 100000 values" in line
    found = outcome(steps)
    assert (found["job"].endswith("@lost"), command) == (True, found["data"]["command"])
    assert ([], 1) == (numbers(steps), steps.queue.stores.failed.count())


@pytest.mark.bad_input("B106")
def test_a_batch_in_a_chain_in_a_batch_is_passed_on_as_it_stands(steps: Site) -> None:
    inner = PhpObject("Illuminate\\Bus\\ChainedBatch", {"jobs": [[PhpObject(STEP, {"number": 3})]], "name": "inner"})
    command = build_command(STEP, {"number": 1, "batchId": "outer", "chained": [serialize(inner)]})
    push(steps, command)

    run(steps)
    assert [1] == numbers(steps)
    assert command == outcome(steps)["data"]["command"]


@pytest.mark.bad_input("B107")
@pytest.mark.parametrize("reference", ["r:1;", "R:1;"])
def test_a_chain_that_refers_to_itself_fails_in_one_line_and_laravel_learns_of_it(steps: Site, reference: str) -> None:
    push(steps, f'O:{len(STEP)}:"{STEP}":2:{{s:6:"number";i:1;s:7:"chained";{reference}}}')

    [line] = run(steps)
    assert "reference" in line
    assert outcome(steps)["job"].endswith("@lost")
    assert ([], 1) == (numbers(steps), steps.queue.stores.failed.count())


@pytest.mark.bad_input("B108")
def test_a_lock_with_an_odd_name_keeps_no_job_from_its_end(steps: Site) -> None:
    locks = [Lock(name, "owner", 60.0) for odd in ODD_NAMES for name in (odd, name_of(STEP, odd))]
    contexts = [claimed(None, lock, kind_of(steps.connection.url)) for lock in locks]
    contexts.append({"data": {}, "hidden": {NAME: 's:3:"\xe9";'}})
    for number, context in enumerate(contexts):
        push(steps, build_command(STEP, {"number": number}), context)

    # None was ever taken, of which a database can tell one by its name.
    assert [] == [line for line in run(steps) if "check --peek looks for it" not in line]
    assert ([*range(len(contexts))], 0) == (numbers(steps), steps.queue.size("steps"))


@pytest.mark.bad_input("B108")
@pytest.mark.parametrize("name", ["\ud800", "\0"])
def test_an_odd_name_that_the_handler_gives_its_lock_keeps_no_job_from_its_end(steps: Site, name: str) -> None:
    (steps.path / "steps.py").write_text(
        HANDLER.replace("skip_if_cancelled=True", f"unique_id=lambda number: {name!r}")
    )
    push(steps, build_command(STEP, {"number": 1}))

    run(steps)
    assert ([1], 0) == (numbers(steps), steps.queue.size("steps"))


@pytest.mark.bad_input("B109")
def test_a_lock_that_another_job_holds_stays(steps: Site) -> None:
    lock, store = Lock(name_of(STEP, "7"), "another", 60.0), steps.queue.stores.queue
    assert store.push("other", new_jobs(b"{}"), 0.0, lock)
    context = claimed(None, lock._replace(owner="ours"), kind_of(steps.connection.url))
    push(steps, build_command(STEP, {"number": 1}), context)

    assert [] == run(steps)
    assert [1] == numbers(steps)
    assert not store.push("other", new_jobs(b"{}"), 0.0, lock._replace(owner="ours"))


@pytest.mark.bad_input("B110")
def test_an_outcome_that_cannot_be_pushed_leaves_the_step_its_lock_and_it_runs_again(
    site: Site, server: redis.Redis
) -> None:
    (site.path / "steps.py").write_text(HANDLER)
    server.set(f"{PREFIX}queues:outcomes", "no list")
    lock = Lock(name_of(STEP, "7"), "owner", 60.0)
    command = build_command(STEP, {"number": 1, "chained": [NEXT]})
    push(site, command, claimed(None, lock, "redis"))
    assert site.queue.stores.queue.push("other", new_jobs(b"{}"), 0.0, lock)

    [line] = run(site, lease=2)
    assert "WRONGTYPE" in line
    assert [1] == numbers(site)
    assert 1 == site.queue.stores.queue.sizes("steps").reserved
    assert not site.queue.stores.queue.push("other", new_jobs(b"{}"), 0.0, lock)

    server.delete(f"{PREFIX}queues:outcomes")
    eventually(lambda: [] == run(site, lease=2) and [1, 1] == numbers(site))
    assert outcome(site)["job"].endswith("@succeeded")
    assert site.queue.stores.queue.push("other", new_jobs(b"{}"), 0.0, lock)


@pytest.mark.bad_input("B111")
def test_a_step_of_a_batch_that_is_gone_runs_and_laravel_learns_of_it(steps: Site) -> None:
    push(steps, build_command(STEP, {"number": 1, "batchId": "gone"}))

    assert [] == run(steps)
    assert [1] == numbers(steps)
    assert outcome(steps)["job"].endswith("@succeeded")


@pytest.mark.bad_input("B111")
def test_without_the_table_of_batches_a_step_that_asks_for_its_batch_fails_in_one_line(steps: Site) -> None:
    push(steps, build_command(STEP, {"number": 1, "batchId": "unknown"}))
    (steps.path / "batches.db").unlink()
    site_at(batches_url(steps.path), steps.path).queue.close()  # our tables, and not Laravel's

    [line] = run(steps)
    assert "no table job_batches: set batches_url" in line
    assert outcome(steps)["job"].endswith("@lost")
    assert ([], 1) == (numbers(steps), steps.queue.stores.failed.count())
