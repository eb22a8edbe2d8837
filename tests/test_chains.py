"""Chains, batches and unique jobs of the real Laravel 8.83 that a worker here runs: Laravel goes on with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import PREFIX
from eventually import eventually
from laravel_peer import Peer, require_php
from pools import Site
from shared_tables import BRANDS

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.jobs.client import Queue

STEP, UNIQUE, UNTIL = "App\\Jobs\\Step", "App\\Jobs\\UniqueStep", "App\\Jobs\\UniqueUntilStep"
OUTCOMES = "[connection]\noutcomes = outcomes\n"


#: how Laravel's locks are found: its cache prefix, and in Redis that of all keys
KEYS = {"redis": f"{PREFIX}laravel_cache:", "sql": "laravel_cache"}


@pytest.fixture(params=["redis", *BRANDS])
def both(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Site, Peer]]:
    """A place for pools and an application on one store; on Redis, its batches are in a file of SQLite."""
    require_php("sqlite" if request.param == "redis" else BRANDS[request.param][0])
    if request.param == "redis":
        url = f"sqlite:///{tmp_path / 'batches.db'}"
        monkeypatch.setenv("QP_BATCHES_URL", url)
        Peer.on(url, tmp_path / "unused").run("migrate", shape="batches")
        yield request.getfixturevalue("site"), request.getfixturevalue("peer")
        return
    url = request.getfixturevalue(f"{request.param}_url")
    peer = Peer.on(url, tmp_path / "laravel.jsonl")
    peer.run("migrate")
    peer.run("migrate", shape="batches")
    connection = ConnectionSettings(url=url)
    with closing(Queue(connection)) as queue:
        yield Site(connection, tmp_path, queue), peer


@pytest.fixture
def laravel(both: tuple[Site, Peer]) -> Peer:
    return both[1]


@pytest.fixture
def steps(both: tuple[Site, Peer]) -> Site:
    """Handlers for the steps, which note their number."""
    site, _ = both
    (site.path / "steps.py").write_text(STEPS)
    return site


STEPS = f"""
from poolapp import note
from queuepool import current, job

def step(number, fails=False):
    note(event="step", number=number, queue=current().queue, attempt=current().attempts)
    if fails:
        raise RuntimeError("told to fail")

job({STEP!r})(step)
job({UNIQUE!r}, unique_id=lambda number, fails=False: number)(step)
job({UNTIL!r}, unique_id=lambda number, fails=False: number, unique_until="start")(step)
"""


def numbers(site: Site) -> list[int]:
    return [line["number"] for line in site.trail(event="step")]


def outcomes_run(peer: Peer) -> None:
    peer.run("work", queue="outcomes", stop_when_empty=True)


def callbacks(peer: Peer) -> list[str]:
    return [line["callback"] for line in peer.lines() if "callback" in line]


def test_a_chain_goes_on_step_by_step_with_what_laravel_made(steps: Site, laravel: Peer) -> None:
    laravel.run("chain", "3", queue="steps")
    with steps.pool("--queue", "steps", "--modules", "steps", "--workers", "2", config=OUTCOMES):
        for number in (1, 2, 3):
            eventually(lambda number=number: numbers(steps) == list(range(1, number + 1)))
            eventually(lambda number=number: steps.queue.size("outcomes") == (number < 3))
            outcomes_run(laravel)
    assert [] == laravel.lines()


def test_a_failed_step_ends_the_chain_and_its_callbacks_are_called(steps: Site, laravel: Peer) -> None:
    laravel.run("chain", "3", queue="steps", fails=1)
    with steps.pool("--queue", "steps", "--modules", "steps", config=OUTCOMES):
        eventually(lambda: 1 == steps.queue.size("outcomes"))
        outcomes_run(laravel)
    assert [1] == numbers(steps)
    caught, failed = laravel.lines()
    assert {"callback": "chain-catch", "error": "RuntimeError: told to fail"} == caught
    assert {"failed": STEP, "number": 1, "error": "RuntimeError: told to fail"} == failed


def test_a_batch_is_counted_and_its_callbacks_are_called_once(steps: Site, laravel: Peer) -> None:
    batch = laravel.run("batch", "3", queue="steps", fails=2)["id"]
    with steps.pool("--queue", "steps", "--modules", "steps", config=OUTCOMES):
        eventually(lambda: 3 == steps.queue.size("outcomes"))
        outcomes_run(laravel)
    state = laravel.run("batch-state", batch)
    assert (3, 1, 1) == (state["totalJobs"], state["pendingJobs"], state["failedJobs"])
    assert ["catch", "finally"] == callbacks(laravel)


def test_without_outcomes_a_chain_is_refused_before_it_begins_and_goes_on_when_retried(
    steps: Site, laravel: Peer
) -> None:
    laravel.run("chain", "2", queue="steps")
    with steps.pool("--queue", "steps", "--modules", "steps"):
        [failed] = eventually(lambda: steps.queue.stores.failed.page())
    assert [] == numbers(steps)
    assert "is followed by 1 more of its chain and has callbacks" in failed.exception

    steps.run("retry", *steps.where, "all")
    with steps.pool("--queue", "steps", "--modules", "steps", config=OUTCOMES):
        eventually(lambda: 1 == steps.queue.size("outcomes"))
        outcomes_run(laravel)
        eventually(lambda: [1, 2] == numbers(steps))


def test_without_outcomes_a_chain_can_be_cut_on_purpose(steps: Site, laravel: Peer) -> None:
    laravel.run("chain", "2", queue="steps")
    with steps.pool("--queue", "steps", "--modules", "steps", config="[connection]\nforeign = ignore\n"):
        eventually(lambda: [1] == numbers(steps))
        eventually(lambda: 0 == steps.queue.size("steps"))


@pytest.mark.parametrize("fails", [False, True])
def test_a_unique_lock_is_released_with_the_job(steps: Site, laravel: Peer, fails: bool) -> None:
    key = f"[connection]\nrestart_key = {KEYS[kind_of(steps.connection.url)]}illuminate:queue:restart\n"
    assert laravel.run("unique", "7", queue="steps", fails=fails)["pushed"]
    assert not laravel.run("unique", "7", queue="steps")["pushed"]
    with steps.pool("--queue", "steps", "--modules", "steps", config=key):
        eventually(lambda: [7] == numbers(steps))
        eventually(lambda: 0 == steps.queue.size("steps"))
    assert laravel.run("unique", "7", queue="steps")["pushed"]
