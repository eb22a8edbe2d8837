"""A worker that runs many jobs at once dies: the one that did it answers for it, and the others run again uncounted."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.counts import JobCounts
from tests.support.eventually import eventually
from tests.support.meters import counts_in, of_job
from tests.support.pools import Site

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")
#: seconds: a deadline before which a job is at what does not end, also on a busy machine
LATE = 2
#: seconds from there to the alarm, half of which the loop must be seen free: then the job that hangs answers alone
GRACE = "2"


def push(site: Site, mode: str, **data: Any) -> str:
    return site.push(mode, name="beside", **data)


def neighbours(site: Site, count: int = 3, **options: Any) -> None:
    """Jobs that run until ``open_gate``."""
    for number in range(count):
        push(site, "until", gate=str(site.path / "gate"), tag=f"neighbour {number}", **options)


def have_begun(site: Site, count: int = 3) -> None:
    eventually(lambda: len(site.trail(event="start", mode="until")) >= count)


def open_gate(site: Site) -> None:
    (site.path / "gate").touch()


def only_failure(site: Site) -> Any:
    return eventually(site.queue.stores.failed.page)[0]


def run_again_uncounted(site: Site, count: int = 3) -> None:
    """Each neighbour has begun twice, both times as its first attempt, and ends once."""
    eventually(lambda: 2 * count == len(site.trail(event="start", mode="until")))
    open_gate(site)
    eventually(lambda: count == len(site.trail(event="end", mode="until")))
    assert {1} == {line["attempt"] for line in site.trail(event="start", mode="until")}


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["swallow", "block", "hold_the_gil"])
def test_a_job_that_does_not_end_at_its_deadline_ends_the_worker_and_answers_alone(site, mode):
    neighbours(site, maxTries=1)
    with site.pool(*BESIDE, "--grace", GRACE) as pool:
        have_begun(site)
        push(site, mode, maxTries=1, timeout=LATE)
        record = only_failure(site)
        run_again_uncounted(site)
        eventually(lambda: site.trail(event="after_failed"))  # a hook that is noted last waits for the next start
        assert 1 == site.queue.stores.failed.count()

    assert "TimedOut" in record.exception
    assert mode == "swallow" or "besideapp.py" in record.exception
    assert [mode] == [line["mode"] for line in site.trail(event="after_failed")]
    assert "signal 14" in pool.log()


def test_a_plain_function_that_hangs_in_its_thread_answers_for_the_worker_that_it_costs(site):
    neighbours(site, maxTries=1)
    with site.pool(*BESIDE, "--grace", GRACE):
        have_begun(site)
        site.push("hang_in_c", maxTries=1, timeout=LATE)
        record = only_failure(site)
        run_again_uncounted(site)
        assert 1 == site.queue.stores.failed.count()

    assert "TimedOut" in record.exception
    assert "poolapp.py" in record.exception


@pytest.mark.thorough("unit/test_blame.py has the ruling; the tests around have other ends of a worker")
def test_a_worker_that_is_halted_is_killed_by_the_master_and_the_job_that_ran_answers(site):
    neighbours(site, maxTries=1)
    with site.pool(*BESIDE, "--grace", "0.5"):
        have_begun(site)
        push(site, "stop", maxTries=1, timeout=LATE)
        record = only_failure(site)
        run_again_uncounted(site)
        assert 1 == site.queue.stores.failed.count()

    assert "killed by the master" in record.exception


@pytest.mark.thorough("the test above has a thread that hangs, and the next ones a crash")
def test_a_plain_function_that_crashes_in_its_thread_fails_alone(site):
    neighbours(site)
    with site.pool(*BESIDE):
        have_begun(site)
        site.push("segfault", maxTries=1)
        only_failure(site)
        open_gate(site)
        eventually(lambda: 3 == len(site.trail(event="end", mode="until")))
        eventually(lambda: 0 == site.queue.size())

    assert ["do"] == [row.name for row in site.queue.stores.failed.page()]


@pytest.mark.thorough("unit/test_blame.py has the ruling; the tests around have other ends of a worker")
def test_a_steward_that_is_killed_with_the_worker_changes_no_ruling(site):
    neighbours(site, maxTries=1)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        push(site, "when", gate=str(site.path / "crash"), then="segfault", maxTries=1)
        eventually(lambda: site.trail(event="start", mode="when"))
        os.kill(pool.steward(), signal.SIGKILL)
        (site.path / "crash").touch()
        record = only_failure(site)
        run_again_uncounted(site)
        assert 1 == site.queue.stores.failed.count()

    assert "WorkerDied" in record.exception


def test_the_jobs_of_a_killed_master_end_once(site):
    neighbours(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        pool.titles()
        os.kill(pool.pid, signal.SIGKILL)
        pool.wait()
        open_gate(site)
        eventually(lambda: 0 == site.queue.size())

    assert 3 == len(site.trail(event="start", mode="until")) == len(site.trail(event="end", mode="until"))


@pytest.mark.parametrize("grace", [pytest.param("0.2", marks=pytest.mark.thorough("as with half a second")), "3"])
def test_the_blame_does_not_depend_on_the_grace(site, grace):
    neighbours(site, maxTries=1)
    with site.pool(*BESIDE, "--grace", grace):
        have_begun(site)
        push(site, "block", maxTries=1, timeout=LATE)
        record = only_failure(site)
        run_again_uncounted(site)

    assert "TimedOut" in record.exception


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["block", "hold_the_gil"])
def test_a_job_without_a_deadline_that_blocks_the_loop_answers_for_the_neighbour_that_could_not_end(site, mode):
    # It outlasts the time that a busy machine takes to begin the other one.
    push(site, "until", gate=str(site.path / "gate"), timeout=5, maxTries=1)
    with site.pool(*BESIDE, "--grace", "0.5"):
        have_begun(site, 1)
        push(site, mode, maxTries=1, timeout=0)
        record = only_failure(site)
        eventually(lambda: 2 == len(site.trail(event="start", mode="until")))
        open_gate(site)
        eventually(lambda: site.trail(event="end", mode="until"))

    assert "blocked the event loop" in record.exception
    assert {1} == {line["attempt"] for line in site.trail(event="start", mode="until")}


@pytest.mark.by_turns("mode", "cause")
@pytest.mark.parametrize(("mode", "cause"), [("segfault", "SIGSEGV"), ("exit", "exit code 0")])
def test_a_job_that_ends_its_worker_in_a_step_answers_alone(site, mode, cause):
    neighbours(site)
    with site.pool(*BESIDE):
        have_begun(site)
        push(site, mode, maxTries=1)
        record = only_failure(site)
        run_again_uncounted(site)
        assert 1 == site.queue.stores.failed.count()

    assert "WorkerDied" in record.exception
    assert cause in record.exception


@pytest.mark.thorough("unit/test_blame.py has the ruling; the tests around have other ends of a worker")
def test_a_segfault_beside_others_leaves_its_stack_in_the_failed_record(site):
    push(site, "segfault", maxTries=1)
    with site.pool(*BESIDE):
        record = only_failure(site)

    assert "besideapp.py" in record.exception


def test_a_job_that_kills_its_worker_again_and_again_fails_at_last_and_the_others_end(site):
    neighbours(site)
    with site.pool(*BESIDE):
        have_begun(site)
        push(site, "kill", maxTries=2)
        eventually(lambda: 2 == len(site.trail(event="start", mode="kill")))
        open_gate(site)  # from the second death on, all that may have done it run one at a time
        only_failure(site)
        eventually(lambda: 3 == len(site.trail(event="end", mode="until")))
        eventually(lambda: 0 == site.queue.size())
        assert 1 == site.queue.stores.failed.count()


FAILS_ONCE = """
import ctypes, pathlib, threading
from queuepool import on
from queuepool.events import LoopBlocked

def fail():
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(threading.main_thread().ident), ctypes.py_object(MemoryError)
    )

@on(LoopBlocked)
def once(event):
    try:
        pathlib.Path("failed").touch(exist_ok=False)
    except FileExistsError:
        return
    threading.Timer(0.2, fail).start()
"""


@pytest.mark.thorough("unit/test_blame.py has the ruling; the tests around have other ends of a worker")
def test_no_job_answers_for_an_exception_that_ends_the_main_thread(site):
    """Also not the one that has the CPU at that moment."""
    (site.path / "ears.py").write_text(FAILS_ONCE)
    push(site, "hog", gate=str(site.path / "gate"), maxTries=1)
    with site.pool(*BESIDE, "--listeners", "ears"):
        eventually(lambda: 2 == len(site.trail(event="start", mode="hog")))
        open_gate(site)
        eventually(lambda: site.trail(event="end", mode="hog"))
        assert 0 == site.queue.stores.failed.count()

    assert {1} == {line["attempt"] for line in site.trail(event="start", mode="hog")}


@pytest.mark.thorough("unit/test_blame.py has the ruling; the tests around have other ends of a worker")
def test_crashes_are_limited_whatever_tries_are_left(site):
    push(site, "segfault", maxTries=100)
    with site.pool(*BESIDE, "--max-crashes", "2"):
        record = only_failure(site)

    assert 2 == len(site.trail(event="start", mode="segfault"))
    assert "WorkerDied" in record.exception


def test_a_kill_from_outside_fails_nobody(site):
    neighbours(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        os.kill(pool.workers()[0], signal.SIGKILL)
        eventually(lambda: 6 == len(site.trail(event="start", mode="until")))
        open_gate(site)
        eventually(lambda: 3 == len(site.trail(event="end", mode="until")))
        eventually(lambda: 0 == site.queue.size())

    assert 0 == site.queue.stores.failed.count()


@pytest.mark.thorough("unit/test_meters_when_killed.py has the counts of a dead worker")
def test_each_attempt_counts_once_in_the_meters_also_after_a_death(site):
    neighbours(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        push(site, "raise", maxTries=1)
        eventually(site.queue.stores.failed.count)
        push(site, "segfault", maxTries=1)
        eventually(lambda: 2 == site.queue.stores.failed.count())
        run_again_uncounted(site)

        counted = partial(of_job, name="beside")
        eventually(lambda: (3, 2, 3) == _ends(counted(counts_in(Path(pool.runtime)))))
        assert 1 == counted(counts_in(Path(pool.runtime))).crash


def _ends(counts: JobCounts) -> tuple[int, int, int]:
    return counts.done, counts.failed, counts.given_back
