"""Nothing that an async job leaves on its worker's event loop harms a later job."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.pools import Site

ONE = ("--workers", "1", "--modules", "tests.support.asyncapp")


def push(site: Site, mode: str, **data: Any) -> None:
    site.push(mode, name="async", **data)


def ended(site: Site, mode: str) -> list[dict[str, Any]]:
    return eventually(lambda: site.trail(event="end", mode=mode))


def told_of(log: str) -> list[tuple[str, str, str]]:
    """Job, tasks and those that refused, of each line that tells of tasks that were left."""
    return re.findall(r"tasks left behind .* job=(\w+) .* tasks=(\d+) refused=(\d+)", log)


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["leave", "leave_and_raise", "leave_in_the_hook"])
def test_tasks_that_a_job_or_its_hook_has_left_are_cancelled_and_told(site, mode):
    push(site, mode, maxTries=1)
    push(site, "sleep", seconds=0.2)
    with site.pool(*ONE) as pool:
        ended(site, "sleep")
        events = [line["event"] for line in site.trail()]

    (next_job,) = (n for n, line in enumerate(site.trail()) if line.get("mode") == "sleep" and line["event"] == "start")
    assert 1 == events[:next_job].count("cancelled")
    assert "goes on" not in events[next_job:]
    assert [("async", "1", "0")] == told_of(pool.log())


@pytest.mark.thorough("jobs that leave their loop in disorder; the tests above have tasks that are left behind")
def test_how_many_they_were_is_told(site):
    push(site, "leave", tasks=7)
    with site.pool(*ONE) as pool:
        eventually(lambda: 7 == len(site.trail(event="cancelled")))
        eventually(lambda: [("async", "7", "0")] == told_of(pool.log()))


@pytest.mark.by_turns("mode", "later")
@pytest.mark.parametrize(("mode", "later"), [("stop", 0.0), ("stop", 0.1), ("stop_and_wait", 0.0)])
def test_a_job_that_stops_the_loop_fails_no_other(site, mode, later):
    push(site, mode, maxTries=1, **({"later": later} if later else {}))
    push(site, "sleep", seconds=0.3, maxTries=1)
    push(site, "ok", maxTries=1)
    with site.pool(*ONE):
        ended(site, "ok")

    assert ["stop", "sleep", "ok"] == [line["mode"].removesuffix("_and_wait") for line in site.trail(event="end")]
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.thorough("jobs that leave their loop in disorder; the tests above have tasks that are left behind")
@pytest.mark.parametrize("timeout", [60, 0])
def test_a_task_that_cannot_be_cancelled_stays_behind_with_its_loop(site, timeout):
    push(site, "leave", work="refuse", timeout=timeout)
    push(site, "sleep", seconds=0.2)
    with site.pool(*ONE) as pool:
        eventually(lambda: site.trail(event="end", mode="sleep"))
        eventually(lambda: 1 == len(set(pool.workers())))

    assert [("async", "1", "1")] == told_of(pool.log())
    left, slept = site.trail(event="start")
    assert left["pid"] == slept["pid"]


def test_a_task_that_blocks_when_it_is_cancelled_costs_the_worker_at_the_jobs_deadline_and_not_the_job(site):
    push(site, "leave", work="block", timeout=3, maxTries=5)  # in which the job itself ends on a busy machine
    push(site, "ok")
    with site.pool(*ONE, "--grace", "60") as pool:
        ended(site, "ok")
        eventually(lambda: "signal 14" in pool.log())

    assert ["leave", "ok"] == [line["mode"] for line in site.trail(event="start")]
    assert 0 == site.queue.size()
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.thorough("jobs that leave their loop in disorder; the tests above have tasks that are left behind")
def test_a_task_that_ends_the_program_when_it_is_cancelled_does_not_end_the_worker(site):
    push(site, "leave", work="quit")
    push(site, "ok")
    with site.pool(*ONE) as pool:
        ended(site, "ok")

    left, ok = site.trail(event="start")
    assert left["pid"] == ok["pid"]
    assert [("async", "1")] == [line[:2] for line in told_of(pool.log())]


def test_an_async_generator_that_a_job_has_not_exhausted_is_closed_before_the_next_job_and_no_news(site):
    push(site, "take_one")
    push(site, "ok")
    with site.pool(*ONE) as pool:
        ended(site, "ok")

    events = [(line["event"], line.get("mode")) for line in site.trail()]
    assert [("end", "take_one"), ("closed", None), ("start", "ok")] == events[1:4]
    assert [] == told_of(pool.log())


def test_jobs_that_leave_nothing_behind_share_the_loop_and_its_threads(site):
    for mode in ("ok", "thread", "leave", "thread", "ok"):
        push(site, mode)
    with site.pool(*ONE):
        eventually(lambda: 5 == len(site.trail(event="end")))

    assert 1 == len({line["loop"] for line in site.trail(event="start")})


@pytest.mark.thorough("jobs that leave their loop in disorder; the tests above have tasks that are left behind")
def test_a_stop_waits_for_a_job_and_what_it_left(site):
    push(site, "leave", tasks=3)
    with site.pool(*ONE) as pool:
        eventually(lambda: site.trail(event="start"))
        os.kill(pool.pid, signal.SIGTERM)
        assert 0 == pool.wait()

    assert 3 == len(site.trail(event="cancelled"))
    assert 0 == site.queue.size()


@pytest.mark.thorough("jobs that leave their loop in disorder; the tests above have tasks that are left behind")
def test_what_waits_behind_a_slow_hook_is_done_by_another_worker(site):
    site.queue.push("blocking", {"gate": str(site.path / "gate")})
    push(site, "ok")
    flags = ("--workers", "2", "--reserve-ahead", "8", "--modules", "tests.support.asyncapp")
    with site.pool(*flags):
        [hook] = eventually(lambda: site.trail(event="hook"))
        [ok] = eventually(lambda: site.trail(event="end", mode="ok"))
        assert [] == site.trail(event="end of hook")
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end of hook"))

    assert hook["pid"] != ok["pid"]
