"""``run_now``: a dispatch runs its job as a worker does, through the payload, without waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from queuepool import configure, context, on
from queuepool.errors import BadArguments, JobFailedByHand, QueuepoolError, UnknownJob
from queuepool.events import JobProcessed, JobProcessing, JobQueued, JobReleased
from queuepool.jobs.client import Queue
from queuepool.jobs.current_job import running
from queuepool.testing import run_now
from tests.support.each import each
from tests.testing.jobs import (
    Bill,
    Line,
    again,
    asynchronous,
    at_most_two_exceptions,
    dated,
    decides,
    endless,
    ends,
    flaky,
    hooked,
    once,
    parent,
    secret,
    traced,
    tracked,
    untold,
    welcome,
)


def outcomes(ran):
    return [(one.outcome, one.attempt, one.delay) for one in ran.attempts]


def test_a_job_has_run_when_its_dispatch_returns(done):
    with run_now() as ran:
        identity = welcome.dispatch("ada")

        assert done == [("ada", "plain")]
        assert [(one.id, one.name, one.queue) for one in ran.done] == [(identity, "testing.welcome", "mail")]
        ran.pushed.assert_pushed(welcome, "ada")
    assert running() is None


def test_arguments_go_through_the_payload(done):
    """What annotations do not turn back arrives as JSON has it."""
    lines = [Line(3)]
    with run_now():
        dated.dispatch(date(2026, 11, 23))
        Bill(lines, to=("a", "b")).dispatch()

    assert done == [date(2026, 11, 23), ([Line(3)], ["a", "b"])]
    assert done[1][0] is not lines


def test_tries_and_backoff_are_those_of_a_worker_and_nothing_waits(done):
    began = time.monotonic()
    with run_now() as ran:
        flaky.dispatch(2)

    assert done == [1, 2, 3]
    assert outcomes(ran) == [("released", 1, 60.0), ("released", 2, 3600.0), ("done", 3, None)]
    assert time.monotonic() - began < 30


def test_a_dispatch_raises_the_last_error_of_a_job_that_failed_for_good():
    with run_now() as ran:
        with pytest.raises(ConnectionError, match="attempt 3") as raised:
            flaky.dispatch(9)

        assert [str(one.error) for one in ran.failed] == ["attempt 3"]
    assert raised.value.__notes__ == [f"the job: testing.flaky id={ran.failed[0].id} attempt=3"]


def test_on_request_errors_are_in_the_result_alone(done):
    with run_now(raises=False) as ran:
        assert flaky.dispatch(9)
        welcome.dispatch("ada")

    assert [one.outcome for one in ran.attempts] == ["released", "released", "failed", "done"]


def test_tries_of_a_job_without_that_option_are_the_pools(done):
    with run_now(raises=False, tries=2):
        untold.dispatch()
    with run_now(raises=False):
        untold.dispatch()

    assert done == [1, 2, 1]


def test_max_exceptions_count_those_of_earlier_attempts(done):
    with run_now(raises=False) as ran:
        at_most_two_exceptions.dispatch()

    assert outcomes(ran) == [("released", 1, 5.0), ("failed", 2, None)]


def test_time_passes_for_a_job_that_may_be_tried_until_a_time(done, queue):
    until = time.time() + 100
    with run_now(raises=False):
        queue.push("testing.endless", options={"retryUntil": until, "tries": 0, "backoff": 30})

    assert 4 <= len(done) <= 6


def test_a_handler_decides_how_its_attempt_ends(done):
    with run_now(raises=False) as ran:
        decides.dispatch("release")
        decides.dispatch("fail")
        decides.dispatch("delete")

    assert outcomes(ran) == [
        ("released", 1, 20.0),
        ("done", 2, None),
        ("failed", 1, None),
        ("done", 1, None),
    ]
    assert isinstance(ran.failed[0].error, JobFailedByHand)
    assert isinstance(ran.done[1].error, RuntimeError)


def test_jobs_that_a_job_dispatches_run_after_it_in_their_order(done):
    with run_now() as ran:
        parent.dispatch()

    assert done == ["parent begins", "parent ends", "first", "second", "late"]
    ran.pushed.assert_count(4)


def test_delayed_jobs_run_in_the_order_in_which_they_are_due(done, queue):
    with run_now():
        welcome.later("1h", "later")
        assert done == [("later", "plain")]
        queue.bulk([("testing.welcome", {"to": str(number)}) for number in range(3)])

    assert [to for to, _ in done] == ["later", "0", "1", "2"]


def test_hooks_are_called(done):
    with run_now(raises=False):
        hooked.dispatch(1)
        hooked.dispatch(-1)

    assert done == [("succeeded", 1), ("failed", ValueError, -1)]


def test_an_error_of_a_hook_is_raised_though_the_job_is_done(done):
    with run_now() as ran:
        with pytest.raises(RuntimeError, match="in the hook"):
            hooked.dispatch(100)

        assert [one.outcome for one in ran.attempts] == ["done"]


def test_events_are_emitted_in_order(done):
    seen = []
    on(JobQueued, JobProcessing, JobReleased, JobProcessed)(lambda event: seen.append(type(event).__name__))
    with run_now():
        flaky.dispatch(1)

    assert seen == ["JobQueued", "JobProcessing", "JobReleased", "JobProcessing", "JobProcessed"]


def test_the_lock_of_a_unique_job_ends_with_it(done):
    with run_now():
        assert once.dispatch("k")
        assert once.dispatch("k")

    assert done == ["k", "k"]


def test_a_tracked_job_can_be_followed(queue):
    with run_now(raises=False):
        state = tracked.dispatch(-3).wait(1)
        refused = queue.job(tracked.dispatch(10))

    assert (state.state, state.result, state.attempts) == ("done", -6, 2)
    assert (refused.state, refused.attempts) == ("failed", 1)


def test_encrypted_and_signed_jobs_are_read_with_the_connections_keys(done, queue):
    key = ("k1", "0123456789abcdef")
    configure(replace(queue.settings, app_key=32 * b"k", signing="require", signing_keys=(key,)))
    with run_now():
        secret.dispatch("word")

    assert done == ["word"]


def test_each_connection_has_its_own_keys(done, queue):
    other = Queue(replace(queue.settings, name="other", app_key=32 * b"o"))
    configure(replace(queue.settings, app_key=32 * b"k"))
    with run_now():
        secret.dispatch("word")
        other.push("testing.secret", {"word": "of the other"}, encrypted=True)

    assert done == ["word", "of the other"]


def test_the_context_comes_with_the_job_and_what_a_job_adds_ends_with_it(done):
    with run_now(), context.scope(trace="t1"):
        traced.dispatch()

    assert done == [("t1", {"trace": "t1"})]
    assert context.data == {}


def test_async_jobs_run_in_a_plain_test_and_in_an_async_one(done):
    async def test() -> None:
        asynchronous.dispatch(2)
        await asyncio.to_thread(asynchronous.dispatch, 3)

    with run_now():
        asynchronous.dispatch(1)
        asyncio.run(test())

    assert done == [(1, 1), (2, 1), (3, 1)]


def test_an_async_job_raises_in_an_async_test(done):
    async def test() -> None:
        with pytest.raises(ValueError, match="-1"):
            asynchronous.dispatch(-1)

    with run_now():
        asynchronous.dispatch(1)
        asyncio.run(test())


def test_threads_may_dispatch_at_once(done):
    with run_now() as ran:
        threads = [threading.Thread(target=welcome.dispatch, args=(str(number),)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(done) == len(ran.done) == 8


def test_nothing_of_the_process_is_changed():
    def state() -> list[object]:
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        title = Path("/proc/self/cmdline").read_bytes()
        timer = signal.getitimer(signal.ITIMER_REAL)[0] > 0  # that of pytest-timeout, which runs
        return [handlers, mask, timer, os.getcwd(), title]

    before, threads = state(), {*threading.enumerate()}
    with run_now():
        welcome.dispatch("ada")
        parent.dispatch()
        asynchronous.dispatch(1)
        tracked.dispatch(1)

        assert before == state()
        assert set() == {*threading.enumerate()} - threads  # one of another test's may end meanwhile


def test_an_unknown_job_fails(queue):
    with run_now(), pytest.raises(UnknownJob):
        queue.push("testing.welcom", {"to": "ada"})


@pytest.mark.parametrize("data", [["ada", "rich", "red"], {"colour": "red"}])
def test_arguments_that_do_not_fit_fail_as_in_a_worker(queue, data):
    with run_now(), pytest.raises(BadArguments):
        queue.push("testing.welcome", data)


def test_bytes_that_are_no_job_are_quarantined(queue):
    with run_now(raises=False) as ran:
        queue.push_raw(b"garbage")

    assert [(one.name, one.outcome) for one in ran.failed] == [("", "quarantined")]


def test_after_an_error_the_next_dispatch_runs(done, queue):
    with run_now():
        with pytest.raises(LookupError):
            untold.dispatch()
        welcome.dispatch("ada")

    assert done == [1, ("ada", "plain")]


def test_ctrl_c_ends_the_test_and_sys_exit_only_its_job():
    with run_now(raises=False) as ran:
        with pytest.raises(KeyboardInterrupt):
            ends.dispatch("interrupt")
        ends.dispatch("exit")

    assert [type(one.error) for one in ran.failed] == [KeyboardInterrupt, SystemExit]


@pytest.mark.by_turns("job", "name")
@pytest.mark.parametrize(("job", "name"), [(again, "testing.again"), (endless, "testing.endless")])
@pytest.mark.bad_input("B119")
def test_jobs_without_an_end_are_named(job, name):
    with run_now(most=20) as ran, pytest.raises(QueuepoolError, match=f"after 20 attempts .*{name}"):
        job.dispatch()

    assert len(ran.attempts) == 20


@each("wrong", [{"tries": -1}, {"tries": 1.5}, {"most": 0}, {"most": True}])
@pytest.mark.bad_input("B119")
def test_a_wrong_number_is_refused(wrong):
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"{name} cannot be {value}"), run_now(**wrong):
        pass


def test_what_one_test_leaves_is_gone_in_the_next(queue):
    with run_now(raises=False, most=1), pytest.raises(QueuepoolError):
        again.dispatch()
    with run_now(raises=False) as ran:
        untold.dispatch()

        assert queue.size() == 0
        assert len(ran.attempts) == 1


def test_a_forked_process_has_stores_of_its_own(done):
    with run_now():
        welcome.dispatch("ada")
    child = os.fork()
    if not child:
        with run_now(raises=False) as ran:
            flaky.dispatch(2)
        os._exit(len(ran.attempts))

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
