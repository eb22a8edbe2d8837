"""``as_current``: a handler that uses ``current()`` is called like any function."""

from __future__ import annotations

import threading

import pytest

from queuepool import context, current
from queuepool.errors import QueuepoolError
from queuepool.jobs.current_job import running
from queuepool.testing import Delete, Fail, Release, as_current
from tests.support.each import each
from tests.testing.jobs import decides, flaky, traced


def test_current_returns_the_pretended_job():
    with as_current(job_id="9", name="shop.send", queue="mail", attempt=2, stopping=True, extra={"tags": ["a"]}) as job:
        assert current() is job
        assert (job.id, job.uuid, job.name, job.queue, job.attempts) == ("9", "9", "shop.send", "mail", 2)
        assert (job.stopping, job.extra, job.batch, job.verdict) == (True, {"tags": ["a"]}, None, None)

    with pytest.raises(QueuepoolError, match=r"no job is running in this process: in a test, .*run_now.*as_current"):
        current()


def test_without_arguments_it_is_a_first_attempt_of_a_worker_that_goes_on():
    with as_current() as job:
        assert (job.attempts, job.queue, job.stopping) == (1, "default", False)


def test_a_handler_sees_its_attempt(done):
    with as_current(attempt=1), pytest.raises(ConnectionError):
        flaky(2)
    with as_current(attempt=3):
        flaky(2)

    assert done == [1, 3]


def test_the_verdict_is_what_the_handler_decided():
    with as_current() as job:
        decides("release")
    assert job.verdict == Release(20)

    with as_current() as job:
        decides("fail")
    assert isinstance(job.verdict, Fail)
    assert str(job.verdict.error) == "by hand"

    with as_current() as job, pytest.raises(RuntimeError):
        decides("delete")
    assert job.verdict == Delete()


def test_the_context_that_the_job_came_with(done):
    with as_current(context={"trace": "t1"}):
        traced()
        assert context.data == {"trace": "t1", "step": 1}

    assert done == [("t1", {"trace": "t1"})]
    assert context.data == {}


def test_one_within_another_ends_with_its_block():
    with as_current(job_id="outer") as outer:
        with as_current(job_id="inner"), pytest.raises(ZeroDivisionError):
            raise ZeroDivisionError
        assert current() is outer
    assert running() is None


def test_threads_of_the_handler_see_it():
    seen = []
    with as_current(job_id="9"):
        thread = threading.Thread(target=lambda: seen.append(current().id))
        thread.start()
        thread.join()

    assert seen == ["9"]


@each(
    ("wrong", "words"),
    [
        ({"attempt": 0}, "attempt cannot be 0"),
        ({"attempt": True}, "attempt cannot be True"),
        ({"job_id": ""}, "job_id cannot be ''"),
        ({"name": "a b\n"}, "name cannot be"),
        ({"context": {"a": object()}}, "object"),
    ],
)
@pytest.mark.bad_input("B120")
def test_what_no_job_can_have_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words), as_current(**wrong):
        pass
