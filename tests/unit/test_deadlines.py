"""Deadlines of jobs side by side: each is cancelled at its own, and the alarm is always behind the earliest."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import pytest

from queuepool.worker.deadlines import Deadline, Deadlines
from tests.support.loops import LOOPS

#: longer than any test takes
_LONG, _GRACE = 500.0, 1000.0


class Alarms(list[float]):
    """The times at which the alarm was set; 0.0 = off."""

    @property
    def of(self) -> Callable[[float], None]:
        return self.append


@pytest.fixture
def alarms() -> Alarms:
    return Alarms()


@pytest.fixture(params=LOOPS)
def run(request, alarms):
    """Runs a test's coroutine, which is given the deadlines of its loop."""
    loop = LOOPS[request.param]()
    yield lambda test: loop.run_until_complete(test(Deadlines(loop, _GRACE, alarms.of)))
    loop.close()


Run = Callable[[Callable[[Deadlines], Awaitable[object]]], object]


async def passed(deadline: Deadline) -> bool:
    """Whether it passes in time; the loop looks again and again, since a test must not know when."""
    end = time.monotonic() + 30.0
    while not deadline.passed and time.monotonic() < end:
        await asyncio.sleep(0.001)
    return deadline.passed


def test_a_job_is_cancelled_at_its_deadline_and_its_finally_block_runs(run: Run):
    ended = []

    async def job() -> None:
        try:
            await asyncio.sleep(_LONG)
        finally:
            ended.append(time.monotonic())

    async def test(deadlines: Deadlines) -> None:
        task = asyncio.ensure_future(job())
        deadline = deadlines.begin(0.02, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert deadline.passed
        assert deadline.at - 0.002 <= ended[0]

    run(test)


def test_each_job_has_its_own_and_one_that_has_ended_is_not_cancelled(run: Run):
    cancelled = []

    async def test(deadlines: Deadlines) -> None:
        slow = deadlines.begin(0.5, lambda: cancelled.append("slow"))
        quick = deadlines.begin(0.02, lambda: cancelled.append("quick"))
        over = deadlines.begin(0.02, lambda: cancelled.append("over"))
        same = deadlines.begin(0.02, lambda: cancelled.append("same"))
        endless = deadlines.begin(0.0, lambda: cancelled.append("endless"))
        deadlines.end(over)
        assert await passed(same)
        assert await passed(slow)
        assert (True, False, False) == (quick.passed, over.passed, endless.passed)
        for each in (slow, quick, same, endless):
            deadlines.end(each)

    run(test)

    assert ["quick", "same", "slow"] == cancelled


def test_a_job_is_cancelled_once(run: Run):
    cancelled = []

    async def test(deadlines: Deadlines) -> None:
        swallows = deadlines.begin(0.01, lambda: cancelled.append("swallows"))
        await passed(swallows)
        last = deadlines.begin(0.01, lambda: cancelled.append("last"))
        await passed(last)

    run(test)

    assert ["swallows", "last"] == cancelled


def test_the_alarm_is_behind_the_earliest_at_any_moment(run: Run, alarms: Alarms):
    async def test(deadlines: Deadlines) -> None:
        none = deadlines.begin(0.0, print)
        first, second = deadlines.begin(_LONG, print), deadlines.begin(_LONG, print)
        long, short = deadlines.begin(2 * _LONG, print), deadlines.begin(_LONG / 2, print)
        expected = [first.at, short.at]
        assert expected == seconds(alarms)
        deadlines.end(second)  # not the first of its queue
        deadlines.end(none)
        assert expected == seconds(alarms)
        deadlines.end(short)
        deadlines.end(first)
        assert [*expected, first.at, long.at] == seconds(alarms)
        deadlines.end(long)
        assert 0.0 == alarms[-1]

    run(test)


def seconds(alarms: Alarms) -> list[float]:
    """The deadlines that the alarm was set for."""
    return pytest.approx([alarm - _GRACE for alarm in alarms])  # type: ignore[return-value]


def test_the_alarm_stays_behind_a_job_that_was_cancelled_and_runs_on(run: Run, alarms: Alarms):
    async def test(deadlines: Deadlines) -> None:
        swallows = deadlines.begin(0.01, lambda: None)
        later = deadlines.begin(_LONG, print)
        await passed(swallows)
        assert pytest.approx(swallows.at + _GRACE) == alarms[-1]
        deadlines.end(swallows)
        assert pytest.approx(later.at + _GRACE) == alarms[-1]

    run(test)


def test_a_thousand_jobs_behind_one_that_hangs_leave_nothing(run: Run, alarms: Alarms):
    async def test(deadlines: Deadlines) -> None:
        hangs = deadlines.begin(_LONG, print)
        for _ in range(1_000):
            deadlines.end(deadlines.begin(_LONG, print))
        assert [1] == [len(queue) for queue in deadlines._queues.values()]
        deadlines.end(hangs)

    run(test)

    assert 2 == len(alarms)


# With the kernel's alarm, in a process of its own.
_WORKER = """
import asyncio, sys, time
from pathlib import Path
from queuepool.unix.signals import Alarm
from queuepool.worker.deadlines import Deadlines

alarm = Alarm(open(sys.argv[1], "wb", buffering=0))

def arm(at):
    alarm.arm(max(at - time.monotonic(), 1e-6) if at else 0.0)

async def blocks(seconds):
    time.sleep(seconds)

async def test():
    deadlines = Deadlines(asyncio.get_running_loop(), 0.05, arm)
    deadlines.begin(60.0, print)
    first = deadlines.begin(0.5, print)
    if sys.argv[2] == "ends":
        deadlines.end(first)
    await blocks(float(sys.argv[3]))
    print("alive", flush=True)

asyncio.run(test())
"""


@pytest.mark.parametrize(("way", "seconds", "code"), [("blocks", "60", -signal.SIGALRM), ("ends", "1.0", 0)])
def test_a_blocked_loop_ends_with_the_process_unless_the_job_of_that_deadline_has_ended(tmp_path, way, seconds, code):
    command = [sys.executable, "-c", _WORKER, str(tmp_path / "trace"), way, seconds]

    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)

    assert (code, "" if code else "alive\n") == (done.returncode, done.stdout)
    assert bool(code) == ("in blocks" in (tmp_path / "trace").read_text())
