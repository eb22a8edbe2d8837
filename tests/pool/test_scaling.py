"""Pools that scale by themselves: a burst makes them grow, idleness shrinks them, and no job notices."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support import processes
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site

LISTENER = """
from queuepool import on
from queuepool.events import PoolScaled
from tests.support.poolapp import note
@on(PoolScaled)
def tell(event: PoolScaled) -> None:
    note(event="scaled", before=event.before, after=event.after, why=event.why)
"""
SOON = ("--target-wait", "1", "--memory-reserve", "0")


def between(fewest: int, most: int, *flags: str, down_after: str = "1") -> Sequence[str]:
    """The flags of a pool that begins with the fewest."""
    return "--workers", str(fewest), "--max-workers", str(most), *SOON, "--scale-down-after", down_after, *flags


def status(site: Site, pool: RunningPool, *flags: str) -> dict[str, Any]:
    done = site.run("status", "--json", *site.where, "--runtime-dir", pool.runtime, *flags, check=False)
    [found] = json.loads(done.stdout)
    return dict(found)


def scale(site: Site, pool: RunningPool, *words: str, check: bool = True) -> str:
    done = site.run("scale", *site.where, "--runtime-dir", pool.runtime, *words, check=check)
    return done.stdout + done.stderr


def sizes(log: str) -> list[tuple[int, int]]:
    """The changes that the log tells, from and to."""
    return [(int(one), int(other)) for one, other in re.findall(r"scaled from (\d+) to (\d+) workers: \S", log)]


def why(pool: RunningPool) -> list[str]:
    """What its steward wrote beside its wish; read from the board, as a command for each look would cost too much."""
    return [board.header.wish_why for board in pool._board()]


def held(site: Site, jobs: int, **more: str) -> None:
    """Push so many jobs that run until ``let_go``."""
    for number in range(jobs):
        site.push("until", gate=str(site.path / "gate"), tag=str(number), **more)


def let_go(site: Site) -> None:
    (site.path / "gate").touch()


@pytest.mark.parametrize(
    "most", [8, pytest.param(16, marks=pytest.mark.thorough("more of the same")),
             pytest.param(64, marks=pytest.mark.thorough("more of the same"))]
)  # fmt: skip
def test_a_burst_makes_a_pool_grow_and_idleness_shrinks_it_and_no_job_is_interrupted(site, most):
    (site.path / "ears.py").write_text(LISTENER)
    jobs = 2 * most
    with site.pool(*between(1, most, "--preload", "--listeners", "ears")) as pool:
        held(site, jobs)
        eventually(lambda: most == len(site.trail(event="start")), within=60.0)
        assert most == len(pool.workers())
        shown = status(site, pool)
        let_go(site)
        eventually(lambda: jobs == len(site.trail(event="end")))
        eventually(lambda: 1 == len(pool.workers()), within=60.0)
        eventually(lambda: 1 == status(site, pool)["workers"])
        eventually(lambda: (told := site.trail(event="scaled")) and 1 == told[-1]["after"])
        eventually(lambda: (told := sizes(pool.log())) and 1 == told[-1][1])
        log = pool.log()

    changes = sizes(log)
    assert (1, 1) == (changes[0][0], changes[-1][1])
    assert all(1 <= one <= most and 1 <= other <= most for one, other in changes)
    assert [before for before, _ in changes[1:]] == [after for _, after in changes[:-1]]
    assert most == max(after for _, after in changes)
    assert (most, 1, most) == (shown["workers"], shown["scaling"]["fewest"], shown["scaling"]["most"])
    assert not shown["scaling"]["pinned"]
    assert {1} == {line["attempt"] for line in site.trail(event="end")}
    assert jobs == len(site.trail(event="start"))
    assert all(line["why"] for line in site.trail(event="scaled"))


@pytest.mark.thorough("unit/test_wish.py has the need of workers that run several jobs at once")
def test_a_worker_that_runs_five_jobs_at_once_counts_as_five(site):
    with site.pool(*between(1, 8, "--concurrency", "5")) as pool:
        held(site, 20)
        eventually(lambda: 20 == len(site.trail(event="start")), within=60.0)
        shown = status(site, pool)["workers"]
        let_go(site)
        eventually(lambda: 20 == len(site.trail(event="end")))

    assert (4, 4) == (shown, max(after for _, after in sizes(pool.log())))


def test_a_pool_without_bounds_stays_as_it_is(site):
    held(site, 6)
    with site.pool("--workers", "2", *SOON) as pool:
        eventually(lambda: 2 == len(site.trail(event="start")))
        shown = eventually(lambda: (found := status(site, pool)) and 2 == found["busy"] and found)
        let_go(site)
        eventually(lambda: 6 == len(site.trail(event="end")))
        log = pool.log()

    assert (2, False, []) == (shown["workers"], "scaling" in shown, sizes(log))


def test_an_order_holds_until_it_is_taken_back_and_bounds_change_while_the_pool_runs(site):
    with site.pool(*between(1, 6)) as pool:
        assert "pool default has 4 workers until queuepool scale auto\n" == scale(site, pool, "4")
        eventually(lambda: 4 == len(pool.workers()))
        assert "pool default has 6 workers until" in scale(site, pool, "+2")
        assert "pool default has 3 workers until" in scale(site, pool, "-3")
        assert "has only 3 workers" in scale(site, pool, "-4", check=False)
        pool.signal(signal.SIGHUP)  # the order is of the pool, not of its code
        eventually(lambda: "generation=2" in pool.log())
        pinned = status(site, pool)
        assert ", and scales by itself between 2 and 9\n" in scale(site, pool, "2..9")
        eventually(lambda: 2 == len(pool.workers()))
        assert "pool default has 5 workers until 2" in scale(site, pool, "5", "--for", "1s")
        eventually(lambda: "scaled from 5 to 2 workers: fewer are enough; min_workers" in pool.log())
        assert "room for 31 workers" in scale(site, pool, "2..32", check=False)
        assert "has 4 workers until" in scale(site, pool, "--for", "1h", "4")
        assert "scales by itself between 2 and 9\n" in scale(site, pool, "auto")
        eventually(lambda: 2 == status(site, pool)["workers"])
        free = status(site, pool)["scaling"]

    assert (3, True, "by order") == (pinned["workers"], pinned["scaling"]["pinned"], pinned["scaling"]["why"])
    assert (2, 9, False, None) == (free["fewest"], free["most"], free["pinned"], free["until"])


def test_the_number_stays_when_its_steward_is_killed_and_is_that_of_the_configuration_in_a_new_pool(site):
    """Nothing is interrupted by either death, and what a killed master's workers hold runs once."""
    held(site, 4)
    with site.pool(*between(1, 4, down_after="1h")) as pool:
        eventually(lambda: 4 == len(site.trail(event="start")), within=60.0)
        steward = pool.steward()
        processes.kill(steward)
        eventually(lambda: pool.steward() != steward)
        wished = eventually(lambda: status(site, pool)["scaling"]["wish"])
        assert (4, 4) == (wished, len(pool.workers()))
        processes.kill(pool.pid)
        pool.wait()
        with site.pool(*between(1, 4, down_after="1h")) as second:
            assert 1 == status(site, second)["workers"]
            let_go(site)
            eventually(lambda: 4 == len(site.trail(event="end")))
            site.push("ok", tag="last")
            eventually(lambda: site.trail(event="end", tag="last"))

    assert ["0", "1", "2", "3", "last"] == sorted(line["tag"] for line in site.trail(event="start"))


SEVERAL = """
[pool]
runtime_dir = {path}/run
modules = tests.support.poolapp
workers = 1
target_wait = 1
memory_reserve = 0
[pool:web]
queue = web
max_workers = 3
[pool:mail]
queue = mail
[connection]
url = {url}
prefix = {prefix}
"""


@pytest.mark.thorough("unit/test_share.py has how pools share what waits")
def test_of_two_pools_of_a_file_each_has_its_own_number(site):
    path = site.path / "several.ini"
    path.write_text(SEVERAL.format(path=site.path, url=site.connection.url, prefix=site.connection.prefix))
    path.chmod(0o600)
    pool = RunningPool(site, ["-c", str(path), "--runtime-dir", str(site.path / "run")], "")
    try:
        eventually(lambda: 2 == len(pool.workers()))
        held(site, 3, queue="web")
        held(site, 2, queue="mail")
        eventually(lambda: 3 == len(pool.pids(r"worker \d \[web\] busy")))
        refused = site.run("scale", "1..4", "-c", str(path), check=False)
        mail = pool.pids(r"worker \d+ \[mail\]")
        let_go(site)
        eventually(lambda: 5 == len(site.trail(event="end")))
        pool.end()
    finally:
        pool.kill_all()

    assert (2, 1) == (refused.returncode, len(refused.stderr.splitlines()))
    assert "pool mail does not scale by itself" in refused.stderr
    assert 1 == len(mail)


@pytest.mark.thorough("unit/test_share.py has how pools share what waits")
def test_pools_on_one_queue_share_what_waits_and_one_that_is_paused_leaves_it_to_the_other(site):
    """Each has two workers at most, so that what waits stays."""
    bounds = "--workers", "2", "--min-workers", "1", "--max-workers", "2"
    flags = *bounds, "--target-wait", "600", "--scale-down-after", "1h", "--memory-reserve", "0"
    with site.pool(*flags) as one, site.pool(*flags, "--runtime-dir", str(site.path / "second")) as other:
        held(site, 10)
        eventually(lambda: ["3 of 6 waiting jobs are its part; max_workers"] * 2 == [*why(one), *why(other)])
        shared = status(site, one)["scaling"]
        other.signal(signal.SIGUSR2)
        eventually(lambda: [["6 jobs wait; max_workers"], ["paused"]] == [why(one), why(other)])
        paused = status(site, other)["scaling"]
        other.signal(signal.SIGCONT)
        let_go(site)
        eventually(lambda: 10 == len(site.trail(event="end")))

    assert ("max_workers", 2) == (shared["held"], shared["most"])
    assert shared["not_more"].startswith("max_workers, where ")
    assert "no worker may take jobs" == paused["not_more"]
    assert 10 == len(site.trail(event="start"))
