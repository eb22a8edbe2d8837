"""Jobs with steps in real pools: they are killed, stopped, restarted and retried, and go on where they were."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from queuepool import Flow
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site, is_gone
from tests.support.stepapp import expires

APP = ("--modules", "tests.support.stepapp", "--max-crashes", "0")
ROWS, STEPS = 200, 5
#: seconds within which a job leaves its worker at the end of a row
SOON = 20.0
#: seconds for a dozen workers, one after the other, on a busy machine
RECYCLED = 110.0

pytestmark = pytest.mark.every_store("place")


@pytest.fixture(params=["redis", "sqlite"])
def place(request: pytest.FixtureRequest) -> Iterator[Site]:
    with site_on(request.param, request) as site:
        yield site


def effects(site: Site) -> Counter[str]:
    return Counter(line["name"] for line in site.trail(event="effect"))


def expected(rows: int = ROWS, steps: int = STEPS) -> set[str]:
    return {*(f"step{n}" for n in range(steps)), *(f"row{n}" for n in range(rows)), "last"}


@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["imports", "aimports"])
def test_killed_again_and_again_each_effect_happens_once_and_again_at_most_for_a_kill(place, name):
    kills, chance = 0, random.Random(7)
    with place.pool(*APP, "--workers", "1") as pool:
        place.queue.push(name, {"pause": 0.004})
        while not place.trail(event="end"):
            more = len(place.trail(event="effect")) + chance.randrange(8, 32)
            eventually(lambda more=more: len(place.trail(event="effect")) >= more or place.trail(event="end"))
            if place.trail(event="end"):
                break
            for pid in pool.workers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                kills += 1
        eventually(lambda: not place.queue.size())

    found = effects(place)
    assert expected() == {*found}
    assert kills > 1  # fewer where the looks are late and the job is not
    assert sum(found.values()) - len(found) <= kills
    assert 0 == place.queue.stores.failed.count()
    assert {} == place.queue.stores.steps.of_job(place.trail(event="start")[0]["id"])


def rows_done(site: Site) -> int:
    return len([name for name in effects(site) if name.startswith("row")])


def attempts(site: Site) -> list[int]:
    return [line["attempt"] for line in site.trail(event="start")]


@pytest.mark.by_turns("concurrency", "name")
@pytest.mark.parametrize("name", ["imports", "aimports"])
@pytest.mark.parametrize("concurrency", [(), ("--concurrency", "4")], ids=["alone", "beside"])
def test_at_a_restart_it_leaves_at_once_and_goes_on_behind_its_last_row(site, name, concurrency):
    with site.pool(*APP, "--workers", "1", *concurrency) as pool:
        site.queue.push(name, {"rows": 100_000, "pause": 0.01})
        eventually(lambda: rows_done(site) >= 5)
        [worker] = pool.workers()
        site.run("restart", *site.where)
        eventually(lambda: len(site.trail(event="start")) == 2)
        eventually(lambda: is_gone(worker))
        more = rows_done(site) + 5
        eventually(lambda: rows_done(site) >= more)

    found = effects(site)
    assert {1} == {*found.values()}
    assert [1, 1] == attempts(site)  # no try is used up
    [first, second] = [line["after"] for line in site.trail(event="rows")]
    assert first is None
    assert second in (rows_before := range(4, rows_done(site))), rows_before
    assert 1 == site.queue.sizes("default").ready
    assert "job given back" in pool.log()
    assert "job failed" not in pool.log()


def test_a_stop_does_not_wait_for_an_import(place):
    with place.pool(*APP, "--workers", "1") as pool:
        place.queue.push("imports", {"rows": 100_000, "pause": 0.01})
        eventually(lambda: rows_done(place) >= 3)
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait(SOON)
    assert 1 == place.queue.sizes("default").ready
    done = rows_done(place)

    with place.pool(*APP, "--workers", "1"):
        eventually(lambda: rows_done(place) >= done + 3)
    assert {1} == {*effects(place).values()}
    assert [None, done - 1] == [line["after"] for line in place.trail(event="rows")][:2]
    assert {1} == {*attempts(place)}


@pytest.mark.by_turns("verb")
@pytest.mark.parametrize("verb", [("pause",), ("pause", "default"), ("down",)], ids=" ".join)
def test_it_leaves_when_it_may_not_work_now_and_goes_on_when_it_may(site, verb):
    back = {"pause": "continue", "down": "up"}[verb[0]]
    with site.pool(*APP, "--workers", "1", "--queue", "default,other") as pool:
        where = ["--runtime-dir", pool.runtime] if verb == ("pause",) else site.where
        site.queue.push("imports", {"rows": 100_000, "pause": 0.01})
        eventually(lambda: rows_done(site) >= 3)
        site.run(*verb, *where)
        eventually(lambda: site.queue.sizes("default").ready == 1)
        done = rows_done(site)
        site.run(back, *verb[1:], *where)
        eventually(lambda: rows_done(site) >= done + 3)

    assert {1} == {*effects(site).values()}
    assert {1} == {*attempts(site)}


@pytest.mark.thorough("the memory and the time of a worker lead to the same leave; a restart has it above")
def test_a_worker_that_is_to_be_recycled_lets_it_go_only_once_it_has_come_further(site):
    with site.pool(*APP, "--workers", "1", "--max-time", "1"):
        site.queue.push("imports", {"rows": 40, "pause": 0.3, "steps": 1})
        eventually(lambda: site.trail(event="end"), RECYCLED)

    assert {1} == {*effects(site).values()}
    assert len(attempts(site)) > 3
    assert {1} == {*attempts(site)}


@pytest.mark.thorough("the memory and the time of a worker lead to the same leave; a restart has it above")
def test_a_worker_that_is_too_large_at_once_lets_each_attempt_come_further(site):
    with site.pool(*APP, "--workers", "1", "--memory", "20"):
        site.queue.push("imports", {"rows": 5, "steps": 2})
        eventually(lambda: site.trail(event="end"), RECYCLED)

    assert {1} == {*effects(site).values()}
    assert len(attempts(site)) >= 7
    assert {1} == {*attempts(site)}


@pytest.mark.thorough("the memory and the time of a worker lead to the same leave; a restart has it above")
def test_max_jobs_is_no_reason_to_leave_a_job(site):
    with site.pool(*APP, "--workers", "1", "--max-jobs", "1"):
        site.queue.push("imports", {"rows": 5})
        eventually(lambda: site.trail(event="end"))

    assert [1] == attempts(site)


@pytest.mark.thorough("a job that does what the documentation advises against")
def test_who_swallows_it_gets_it_again_at_each_step(site):
    with site.pool(*APP, "--workers", "1") as pool:
        site.queue.push("swallows", {})
        eventually(lambda: effects(site))
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait(SOON)

    errors = Counter(line["error"] for line in site.trail(event="swallowed"))
    assert {"Leaving"} == {*errors}
    assert len(effects(site)) < 100  # else it makes them all
    assert 0 == site.queue.size()  # it has returned, and so is done


def test_a_step_that_was_done_is_not_done_again_after_a_failure(place):
    with place.pool(*APP, "--workers", "1"):
        place.queue.push("fails", {"times": 1})
        eventually(lambda: effects(place)["second"])
        eventually(lambda: not place.queue.size())

    assert {"due": 1, "second": 1} == effects(place)
    assert [("date", "2026-01-31")] * 2 == [(line["type"], line["value"]) for line in place.trail(event="found")]


@pytest.mark.thorough("a retry pushes the id again, whose steps the test above finds")
def test_a_failed_job_that_is_retried_goes_on_behind_its_steps(place):
    with place.pool(*APP, "--workers", "1"):
        place.queue.push("fails", {"times": 3})
        eventually(lambda: place.queue.stores.failed.count() == 1)
        [failed] = place.queue.stores.failed.page(None, 1)
        assert ["due"] == [*place.queue.stores.steps.of_job(failed.id)]
        place.run("retry", "all", *place.where)
        eventually(lambda: len(place.trail(event="found")) >= 4)
        eventually(lambda: not place.queue.size())

    assert 1 == effects(place)["due"]


@pytest.mark.by_turns("concurrency", "name")
@pytest.mark.parametrize("name", ["gated", "agated"])
@pytest.mark.parametrize("concurrency", [(), ("--concurrency", "4")], ids=["alone", "beside"])
def test_who_has_lost_its_lease_keeps_and_settles_nothing(place, name, concurrency):
    """The queue is cleared while the job runs: its lease is gone."""
    gate = place.path / "gate"
    with place.pool(*APP, "--workers", "1", *concurrency) as pool:
        job = place.queue.push(name, {"gate": str(gate)})
        eventually(lambda: place.trail(event="waits"))
        [worker] = pool.workers()
        place.queue.stores.queue.clear("default")
        gate.touch()
        eventually(lambda: "lease lost" in pool.log())
        place.queue.push("fails", {"times": 0})
        eventually(lambda: effects(place)["second"] == 2)
        assert [worker] == pool.workers()

    assert ["first"] == [*place.queue.stores.steps.of_job(job)]
    assert [] == place.trail(event="end")
    assert ["LeaseEnded"] == [line["error"] for line in place.trail(event="raised")]
    assert 0 == place.queue.stores.failed.count()


@pytest.mark.thorough("the first test kills one job again and again")
@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["imports", "aimports"])
def test_side_by_side_each_job_goes_on_behind_its_own_last_row(site, name):
    kills, chance = 0, random.Random(3)
    with site.pool(*APP, "--workers", "1", "--concurrency", "4") as pool:
        for _ in range(3):
            site.queue.push(name, {"rows": 60, "steps": 1, "pause": 0.005})
        while len(site.trail(event="end")) < 3:
            more = len(site.trail(event="effect")) + chance.randrange(20, 60)
            eventually(lambda more=more: len(site.trail(event="effect")) >= more or len(site.trail(event="end")) >= 3)
            for pid in pool.workers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                kills += 3
        eventually(lambda: not site.queue.size())

    found = effects(site)
    assert expected(60, 1) == {*found}
    assert min(found.values()) >= 3
    assert sum(found.values()) - 3 * len(found) <= kills


@pytest.mark.thorough("expiry and leaving each have a test")
def test_what_has_left_at_a_step_goes_on_though_it_is_too_late_to_begin(place):
    flow = Flow("late")
    flow.add(expires.call(str(place.path / "gate")))
    with place.pool(*APP, "--workers", "1") as pool:
        found = flow.push_to(place.queue)
        eventually(lambda: rows_done(place) >= 62)  # in more than its three seconds
        place.run("restart", *place.where)
        eventually(lambda: 2 == len(attempts(place)))
        (place.path / "gate").touch()
        assert "done" == found.wait(60).state
        assert "job skipped" not in pool.log()

    assert {1} == {*effects(place).values()} == {*attempts(place)}
    assert 2 == len(attempts(place))
