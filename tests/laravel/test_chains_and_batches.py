"""Chains, batches and unique jobs of the real Laravel 8.83 that a worker here runs: Laravel goes on with them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support.chains import OUTCOMES, STEP, go_on, numbers, run_steps
from tests.support.laravel_peer import Peer
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("both")


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


@pytest.mark.thorough("test_a_batch_is_counted_and_its_callbacks_are_called_once")
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


@pytest.mark.by_turns("until", "fails")
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


def test_a_job_knows_its_batch_and_is_left_out_once_it_is_cancelled(steps: Site, laravel: Peer) -> None:
    (steps.path / "steps.py").write_text(BATCHED)
    batches = os.environ.get("QP_BATCHES_URL")
    config = [OUTCOMES, *([f"batches_url = {batches}"] if batches else [])]
    batch = laravel.run("batch", "2", queue="steps")["id"]
    run_steps(steps, *config, "[pool]", "max_jobs = 1")
    assert [{"name": "steps", "total": 2, "pending": 2, "failed": 0, "cancelled": False}] == seen(steps)

    laravel.run("cancel", batch)
    run_steps(steps, *config)
    assert 1 == len(seen(steps))
    go_on(laravel)
    assert 0 == laravel.run("batch-state", batch)["pendingJobs"]


BATCHED = f"""
from tests.support.poolapp import note
from queuepool import current, job

@job({STEP!r}, skip_if_cancelled=True)
def step(number, fails=False):
    note(event="batch", batch={{**current().batch._asdict(), "id": None}})
"""


def seen(site: Site) -> list[dict[str, Any]]:
    """The batch as the jobs saw it."""
    found = [line["batch"] for line in site.trail(event="batch")]
    return [{key: value for key, value in batch.items() if key != "id"} for batch in found]
