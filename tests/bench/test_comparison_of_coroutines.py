"""The comparison with other queues: many coroutines at once, a steady rate, and queues in environments of their own."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import pytest

from tests.bench.peers import elsewhere, load, many, report
from tests.bench.peers.__main__ import ELSEWHERE
from tests.bench.peers.aims import reached
from tests.bench.peers.asides import Asides
from tests.bench.peers.elsewhere import REQUIREMENTS, Remote, pinned
from tests.bench.peers.plan import COROUTINES, DRAINS, ON_POSTGRES, PACED_LATENCIES
from tests.bench.peers.stage import Stage, stage
from tests.bench.test_comparison_with_other_queues import Other

OURS, MORE = "queuepool, 100 at once", "queuepool, 250 at once"
#: they take many times the 10 ms in which the kernel counts a processor's time, and the 20 ms between two looks
JOBS = 5_000


@pytest.fixture(scope="module")
def world():
    with stage() as server:
        yield server


@pytest.fixture(scope="module")
def remote(world: Stage):
    """This queue as one in an environment of its own, which here is this one."""
    with elsewhere.reached("queuepool", Path(sys.executable), ["pytest"]) as there:
        yield next(peer for peer in there.peers if peer.name == OURS)


def test_a_queue_elsewhere_says_what_it_is_and_pushes_what_it_is_asked_to(world: Stage, remote: Remote):
    world.clear()
    remote.bulk("noop", range(3, 6))
    remote.push("noop", 9)

    pushed = [json.loads(payload)["data"] for payload in world.server.lrange("queues:default", 0, -1)]
    assert [3, 4, 5, 9] == [data["n"] for data in pushed]
    assert {"many", "paced"} == remote.fields
    assert not remote.pushes


def test_a_queue_that_is_not_installed_is_left_out_and_the_report_says_so():
    for python in ("/nowhere/bin/python", "/bin/false"):
        with elsewhere.reached("arq", Path(python), []) as there:
            assert ([], "arq could not be measured here") == there
            assert "- arq could not be measured here" in report.written({}, [], [there.about], Asides())


def test_each_queue_elsewhere_has_its_packages_pinned():
    for name in ELSEWHERE:
        lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()[1:]
        assert len(pinned(REQUIREMENTS / f"{name}.txt")) == len(lines) == sum("==" in line for line in lines), name


@pytest.mark.thorough("the test below runs them too")
def test_of_many_coroutines_the_rate_the_processors_time_and_the_memory_are_of_one_run(world: Stage, remote: Remote):
    rate = many.drained(world, remote, JOBS, "nap1")
    processor = many.spent(world, remote, JOBS, "nap1", "processor")
    starts = world.trail.starts()
    memory = many.spent(world, remote, JOBS, "nap1", "memory")

    assert starts == world.trail.starts()  # no further drain
    assert rate[0] > 0
    assert 0 < processor[0] < 20_000
    assert 20 < memory[0] < 2_000
    assert set(range(JOBS)) == set(starts)


def test_at_a_steady_rate_latency_counts_from_each_push_and_too_many_a_second_are_said_so(world: Stage, remote: Remote):
    world.rates[OURS, "noop", 2, 0.0] = [1000.0]

    latencies = load.at_pace(world, remote, 40, 200)

    assert 40 == len(latencies)
    assert all(0 < latency for latency in latencies)
    assert [math.inf] == load.at_pace(world, remote, 40, 801)


def test_each_push_of_a_steady_rate_has_its_own_part_of_the_time():
    pushed: list[int] = []

    class Quick(Other):
        def push(self, job: str, n: int) -> None:
            pushed.append(n)

    began = time.monotonic()
    moments = load.push_singly(Quick("Quick"), 20, 0.005)

    assert list(range(20)) == pushed
    assert all(moment - began >= n * 0.005 for n, moment in enumerate(moments))


def test_the_report_compares_the_others_with_the_way_of_ours_that_is_like_them():
    title, there = COROUTINES[0].title, ON_POSTGRES[0].title
    results = {
        DRAINS[5].title: {"queuepool": [180.0], "Ant": [90.0]},
        title: {OURS: [900.0, 1000.0], MORE: [2000.0, 2000.0], "Ant": [100.0, 200.0], "Snail": [190.0, 190.0]},
        there: {"queuepool on PostgreSQL": [100.0, 100.0], "Elephant": [120.0, 120.0]},
        PACED_LATENCIES[-1].title: {"queuepool": [0.4], OURS: [0.6], "Ant": [math.inf]},
    }
    names = ["queuepool", OURS, MORE, "Ant", "Snail", "Elephant"]
    text = report.written(results, [Other(name) for name in names], [], Asides())
    section = text.partition("## Many coroutines at once\n")[2].partition("\n## ")[0]
    ahead = text.partition("## Where another queue is ahead\n")[2].partition("\n## ")[0]

    assert f"| {MORE} | 2,000 (2,000 to 2,000) |" in section
    assert f"{OURS} is so many times as quick" in section
    assert "| Ant | 7.0 |" in section
    assert "| Snail | 5.0 |" in section
    assert "| Elephant |" not in section
    assert "| Ant | too many |" in text
    assert f"- **Elephant**: {there} 120 beside 100 jobs/s." in ahead
    assert "Ant" not in ahead


def test_of_many_coroutines_the_aim_is_about_the_best_of_the_others():
    best = {OURS: [900.0, 1000.0], MORE: [2000.0, 2000.0], "Ant": [100.0, 200.0], "Snail": [190.0, 190.0]}

    aims = reached({COROUTINES[0].title: best, COROUTINES[2].title: {OURS: [95.0]}, COROUTINES[1].title: {OURS: [1.0]}})

    assert [("≥ 4 × Snail", True), ("p50 ≤ 90 µs", False)] == [(aim.wanted.partition(": ")[2], aim.met) for aim in aims]
