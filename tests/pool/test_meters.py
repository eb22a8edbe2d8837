"""What a pool counts: each attempt once, whatever happens to workers, stewards and the file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from queuepool.board.counts import PoolCounts
from tests.support.eventually import eventually
from tests.support.meters import board_in, counts_in, of_job


def counted(pool, name="do", queue="default"):
    return of_job(counts_in(Path(pool.runtime)), name, queue)


def summary(counts):
    return {name: value for name, value in counts._asdict().items() if isinstance(value, int) and value}


#: what a job does, and how its attempts count
ENDS = [
    ("ok", {}, {"done": 1}),
    ("delete", {}, {"done": 1}),
    ("fail", {}, {"failed": 1}),
    ("release", {"maxTries": 2}, {"released": 1, "done": 1}),
    ("raise", {"maxTries": 3}, {"released": 2, "failed": 1}),
    ("raise", {"times": 1, "maxTries": 3}, {"released": 1, "done": 1}),
    ("kill", {"maxTries": 1}, {"failed": 1, "crash": 1}),
    ("hang_in_c", {"maxTries": 1, "timeout": 0.5}, {"failed": 1, "timeout": 1}),
    ("stop", {"maxTries": 1, "timeout": 0.5}, {"failed": 1, "timeout": 1}),
]


def test_each_attempt_counts_once_by_how_it_ended(site):
    """Each of them in a queue of its own, as counts are by queue and job."""
    queues = {f"{mode}{number}": (mode, options) for number, (mode, options, _) in enumerate(ENDS)}
    for queue, (mode, options) in queues.items():
        site.push(mode, queue=queue, **options)
    with site.pool("--workers", "1", "--grace", "0.3", "--queue", ",".join(queues)) as pool:
        for queue, (*_, expected) in zip(queues, ENDS, strict=True):
            eventually(lambda queue=queue, expected=expected: expected == summary(counted(pool, queue=queue)))
        # Their times are written after the counts.
        found = eventually(lambda: has_its_times(found := [counted(pool, queue=queue) for queue in queues]) and found)

    assert [expected for *_, expected in ENDS] == [summary(one) for one in found]


def has_its_times(found):
    """Whether there is a time of each attempt that has ended."""
    return [one.ended for one in found] == [one.run.observations for one in found]


@pytest.mark.thorough("unit/test_meters.py has how counts are kept; the first test has a pool")
def test_a_killed_attempt_has_its_run_time(site):
    site.push("hang_in_c", maxTries=1, timeout=1)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: counted(pool).run.total)  # it is written after the count

        assert 1.0 <= counted(pool).run.total < 30.0


@pytest.mark.thorough("unit/test_meters.py has how counts are kept; the first test has a pool")
def test_counts_grow_on_while_workers_are_recycled(site):
    site.queue.bulk([("do", {"mode": "ok"})] * 12)
    with site.pool("--workers", "2", "--max-jobs", "1") as pool:
        eventually(lambda: counted(pool).done == 12)
        counts = eventually(lambda: (found := counts_in(Path(pool.runtime))).exits["max_jobs"] >= 12 and found)

        assert summary(counts.jobs["default", "do"]) == {"done": 12}
        assert counts.jobs["default", "do"].wait.observations == 12
        assert sorted(path.name.count(".") for path in Path(pool.runtime).glob("*/*.meters*")) == [2]


def test_counts_survive_the_steward(site):
    site.queue.bulk([("do", {"mode": "ok"})] * 5)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: counted(pool).done == 5)
        os.kill(pool.steward(), signal.SIGKILL)
        site.push("ok")

        eventually(lambda: counted(pool).done == 6)


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["raise", "kill"])
def test_without_metrics_the_board_shows_each_attempt_and_nothing_is_published(site, mode):
    site.push("ok")
    site.push(mode, maxTries=2)
    with site.pool("--workers", "1", "--no-metrics") as pool:
        board = board_in(Path(pool.runtime))
        eventually(lambda: (1, 1, 1) == board.totals())

        assert PoolCounts() == counts_in(Path(pool.runtime))
        assert [] == list(Path(pool.runtime).glob("*/*.meters*"))
