"""Chains, batches and unique jobs of the real Laravel 8.83 that a worker here runs: Laravel goes on with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.jobs.client import Queue
from tests.support.laravel_peer import Peer, require_php
from tests.support.pools import Site
from tests.support.redis_server import PREFIX
from tests.support.shared_tables import BRANDS

STEP, UNIQUE, UNTIL = "App\\Jobs\\Step", "App\\Jobs\\UniqueStep", "App\\Jobs\\UniqueUntilStep"
OUTCOMES = "outcomes = outcomes"


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
from tests.support.poolapp import note
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


def run_steps(site: Site, *config: str) -> None:
    """Run the steps that wait, in one worker."""
    prefix = KEYS[kind_of(site.connection.url)]
    key = f"restart_key = {prefix}illuminate:queue:restart"
    (site.path / "pool.ini").write_text("\n".join(["[connection]", key, *config]))
    site.work("-c", str(site.path / "pool.ini"), "--queue", "steps", "--modules", "steps")


def go_on(peer: Peer) -> None:
    """Let Laravel's worker run the outcomes that wait. Not beside ours: on SQLite, its pop fails at a locked file."""
    peer.run("work", queue="outcomes", stop_when_empty=True)


def callbacks(peer: Peer) -> list[str]:
    return [line["callback"] for line in peer.lines() if "callback" in line]


def test_a_chain_goes_on_with_what_laravel_makes_of_each_step(steps: Site, laravel: Peer) -> None:
    laravel.run("chain", "3", queue="steps")
    for number in (1, 2, 3):
        run_steps(steps, OUTCOMES)
        assert [*range(1, number + 1)] == numbers(steps)
        assert (number < 3) == steps.queue.size("outcomes")
        go_on(laravel)
    assert [] == laravel.lines()
    assert [0, 0] == [steps.queue.size("steps"), steps.queue.size("outcomes")]


def test_a_failed_step_ends_the_chain_and_its_callbacks_are_called(steps: Site, laravel: Peer) -> None:
    laravel.run("chain", "3", queue="steps", fails=1)
    run_steps(steps, OUTCOMES)
    go_on(laravel)
    assert [1] == numbers(steps)
    caught, failed = laravel.lines()
    assert {"callback": "chain-catch", "error": "RuntimeError: told to fail"} == caught
    assert {"failed": STEP, "number": 1, "error": "RuntimeError: told to fail"} == failed
    assert 0 == steps.queue.size("steps")


def test_a_batch_is_counted_and_its_callbacks_are_called_once(steps: Site, laravel: Peer) -> None:
    batch = laravel.run("batch", "3", queue="steps", fails=2)["id"]
    run_steps(steps, OUTCOMES)
    go_on(laravel)
    state = laravel.run("batch-state", batch)
    assert (3, 1, 1) == (state["totalJobs"], state["pendingJobs"], state["failedJobs"])
    assert ["catch", "finally"] == callbacks(laravel)


def test_a_batch_that_succeeds_is_finished(steps: Site, laravel: Peer) -> None:
    batch = laravel.run("batch", "2", queue="steps")["id"]
    run_steps(steps, OUTCOMES)
    go_on(laravel)
    assert 0 == laravel.run("batch-state", batch)["pendingJobs"]
    assert ["then", "finally"] == callbacks(laravel)


def test_without_outcomes_a_chain_is_refused_before_it_begins_and_goes_on_when_retried(
    steps: Site, laravel: Peer
) -> None:
    laravel.run("chain", "2", queue="steps")
    run_steps(steps)
    [failed] = steps.queue.stores.failed.page()
    assert [] == numbers(steps)
    assert "is followed by 1 more of its chain and has callbacks" in failed.exception

    steps.run("retry", *steps.where, "all")
    run_steps(steps, OUTCOMES)
    go_on(laravel)
    run_steps(steps, OUTCOMES)
    assert [1, 2] == numbers(steps)


def test_a_chain_can_be_cut_on_purpose(steps: Site, laravel: Peer) -> None:
    laravel.run("chain", "2", queue="steps")
    run_steps(steps, "foreign = ignore")
    assert ([1], 0, 0) == (numbers(steps), steps.queue.size("steps"), steps.queue.stores.failed.count())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("until", [False, True])
def test_a_unique_lock_is_released_once_the_job_is_over(steps: Site, laravel: Peer, fails: bool, until: bool) -> None:
    def is_pushed() -> bool:
        return bool(laravel.run("unique", "7", queue="steps", until=until, fails=fails)["pushed"])

    assert is_pushed()
    assert not is_pushed()
    run_steps(steps)
    assert [7] == numbers(steps)
    assert is_pushed()
    assert not is_pushed()


def test_a_unique_lock_is_kept_while_the_job_is_to_be_tried_again(steps: Site, laravel: Peer) -> None:
    assert laravel.run("unique", "7", queue="steps", fails=True)["pushed"]
    run_steps(steps, "[pool]", "tries = 2", "backoff = 60")
    assert (1, [7]) == (steps.queue.size("steps"), numbers(steps))
    assert not laravel.run("unique", "7", queue="steps")["pushed"]
