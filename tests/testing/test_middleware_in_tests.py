"""Jobs with middleware in ``run_now`` and ``drain`` end as in a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queuepool import current, job
from queuepool.jobs.current_job import Current
from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.registry import REGISTRY
from queuepool.testing import drain, fake, run_now

ran: list[int] = []


def gate(job: Current) -> Iterator[None]:
    if job.arguments["order"] == 3 and len(ran) < 2:
        job.postpone("1h")
        return
    yield


def noted(order: int) -> None:
    ran.append(order)


@pytest.fixture
def bill(queue) -> Iterator[JobFunction[[int], None]]:
    ran.clear()
    yield job("test.bill", around=[gate], skip_if=lambda order: order == 2)(noted)
    del REGISTRY._handlers["test.bill"]


def test_a_skipped_job_is_done_and_has_not_run(bill):
    with run_now() as made:
        bill.dispatch(1)
        bill.dispatch(2)

    assert ([1], ["done", "done"]) == (ran, [one.outcome for one in made.attempts])


def test_a_job_that_is_put_off_comes_back_at_its_first_attempt(bill):
    with fake():
        for order in (3, 1, 4):
            bill.dispatch(order)
        made = drain(delayed=True)

    assert [1, 4, 3] == ran
    assert [("released", 3600.0, 1), ("done", None, 1)] == [
        (one.outcome, one.delay, one.attempt) for one in (made.attempts[0], made.attempts[-1])
    ]


def fails(order: int) -> None:
    current().postpone(0)
    if order == 1:
        raise KeyError("lost")


@pytest.fixture
def failing(queue) -> Iterator[JobFunction[[int], None]]:
    yield job("test.failing", tries=1)(fails)
    del REGISTRY._handlers["test.failing"]


def test_an_exception_counts_though_the_job_has_put_itself_off(failing):
    with fake():
        failing.dispatch(1)
        made = drain(raises=False)

    assert ["failed"] == [one.outcome for one in made.attempts]


def test_a_job_is_put_off_for_a_second_at_least(failing):
    with fake():
        failing.dispatch(2)
        made = drain()

    assert [("released", 1.0)] == [(one.outcome, one.delay) for one in made.attempts]
