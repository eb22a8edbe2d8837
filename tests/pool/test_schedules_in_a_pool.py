"""Schedules in real pools: on time, once over several pools, and neither pushed nor missed by a restart."""

from __future__ import annotations

import os
import re
import signal
import time
from datetime import datetime

import pytest

from tests.support.drivers import site_at
from tests.support.eventually import eventually

pytestmark = pytest.mark.every_store("driver")

#: seconds by which a due time may be late on a busy machine
BUSY = 25.0
MODULES = ("--modules", "tests.support.scheduleapp", "--workers", "1")
CONFIG = """
[pool:a]
[pool:b]
[schedule]
timezone = Europe/Berlin
[schedule:tick]
every = {every}
job = tick
data = {data}
"""


def config(every: int = 1, data: str = "{}", *more: str) -> str:
    return "\n".join([CONFIG.format(every=every, data=data), *more])


def times(site) -> list[int]:
    """The due times for which jobs ran, in the order of their runs."""
    return [int(datetime.fromisoformat(line["due"]).timestamp()) for line in site.trail(event="tick")]


def settled(site, log: str, every: int) -> list[int]:
    """All due times that were settled: jobs ran for them, or the log says that they were missed."""
    found = times(site)
    for first, last in re.findall(r"schedule missed schedule=tick first=(\S+) last=(\S+) reason=late", log):
        begin, end = (int(datetime.fromisoformat(text).timestamp()) for text in (first, last))
        found += range(begin, end + 1, every)
    return sorted(found)


def has_run(site, count: int):
    return eventually(lambda: times(site) if len(times(site)) >= count else None)


def test_jobs_run_on_time_and_know_their_time(site):
    with site.pool("--pool", "a", *MODULES, config=config(1, '{"kind": "daily"}')) as pool:
        has_run(site, 4)
    ran, log = times(site), pool.log()
    expected = range(ran[0], ran[-1] + 1)

    assert list(expected) == [at for at in settled(site, log, 1) if at <= ran[-1]]
    assert all(0 <= line["at"] - due < BUSY for line, due in zip(site.trail(event="tick"), ran, strict=True))
    assert {"daily"} == {line["kind"] for line in site.trail(event="tick")}
    assert len(ran) == len({line["id"] for line in site.trail(event="tick")})
    assert "schedule pushed schedule=tick job=tick queue=default" in log


@pytest.mark.fault("F79")
@pytest.mark.parametrize("driver", ["redis", "sqlite"])
def test_several_pools_push_each_time_once_though_stewards_and_masters_are_killed(driver, site, tmp_path, request):
    if driver == "sqlite":
        site = site_at(request.getfixturevalue("sqlite_url"), tmp_path)
    with site.pool("--pool", "a", *MODULES, config=config()) as steady:
        apart = ("--pool", "b", "--runtime-dir", str(tmp_path / "run of b"))
        with site.pool(*apart, *MODULES, config=config()) as pool:
            for _ in range(3):
                os.kill(pool.steward(), signal.SIGKILL)
                has_run(site, len(times(site)) + 2)
            pool.signal(signal.SIGKILL)
            has_run(site, len(times(site)) + 2)
        assert steady.workers()
    ran = times(site)

    assert len(set(ran)) == len(ran) == len({line["id"] for line in site.trail(event="tick")})


@pytest.mark.fault("F81")
def test_a_time_that_passes_while_the_pool_is_replaced_is_made_good_by_the_next_one(site):
    """The whole pool is away at a due time, as in a deploy, and nothing is pushed because it starts."""
    every = 10  # seconds: longer than a pool needs to start on a busy machine
    with site.pool("--pool", "a", *MODULES, config=config(every)):
        has_run(site, 1)
    before = times(site)
    missed = before[-1] + every
    eventually(lambda: time.time() > missed + 0.5)
    with site.pool("--pool", "a", *MODULES, config=config(every)) as pool:
        has_run(site, 3)
    ran, log = times(site), pool.log()

    assert list(range(ran[0], ran[-1] + 1, every)) == [at for at in settled(site, log, every) if at <= ran[-1]]
    # It came when the next pool did, and not at the next due time; a pool that is late makes good only the last one.
    made_good = site.trail(event="tick")[len(before)]["at"]
    assert made_good - ran[len(before)] > 0.2


@pytest.mark.thorough("stores/test_firing_schedules.py has it without a pool")
def test_a_new_or_changed_schedule_is_not_pushed_by_the_start(site):
    with site.pool("--pool", "a", *MODULES, config=config(86400)):
        rule = eventually(site.queue.stores.values.marks)["tick"].rule
    # At noon of yesterday this schedule would have been due, had there been one.
    with site.pool("--pool", "a", *MODULES, config=config(43200)):
        eventually(lambda: site.queue.stores.values.marks()["tick"].rule != rule)

    assert [] == times(site)


def test_an_overlapping_job_is_left_out_until_the_last_one_is_over(site):
    gate = site.path / "gate"
    with site.pool("--pool", "a", *MODULES, config=config(1, f'{{"gate": "{gate}"}}', "overlap = no")) as pool:
        has_run(site, 1)
        eventually(lambda: re.search("schedule missed schedule=tick .*reason=overlap", pool.log()))
        assert 1 == len(times(site))
        gate.touch()
        has_run(site, 3)


def test_a_pause_and_maintenance_keep_schedules_back_and_the_latest_time_is_made_good(site):
    with site.pool("--pool", "a", *MODULES, config=config()) as pool:
        has_run(site, 1)
        control = site.queue.stores.control
        for begin, end in ((control.pause_schedule, control.resume_schedule), (control.down, control.up)):
            begin()
            eventually(lambda: is_quiet(site))
            quiet = len(times(site))
            end()
            has_run(site, quiet + 1)
        assert "reason=late" in pool.log()
    ran = times(site)

    assert sorted(set(ran)) == ran


def is_quiet(site) -> bool:
    """Whether nothing was pushed for more than two seconds."""
    return time.time() - site.trail(event="tick")[-1]["at"] > 3.0


@pytest.mark.bad_input("B130")
def test_a_schedule_whose_job_no_module_registers_is_named_at_the_start_and_its_jobs_fail(site):
    with site.pool("--pool", "a", *MODULES, config=config().replace("job = tick", "job = tock")) as pool:
        eventually(lambda: "no job is registered as 'tock'" in pool.log())

    assert "schedule tick: no module registers its job tock" in pool.log()


@pytest.mark.bad_input("B129")
def test_a_pool_does_not_start_with_data_that_no_payload_can_hold(site):
    flags = site.flags("--runtime-dir", str(site.path / "run"), *MODULES, "--pool", "a")
    (site.path / "pool.ini").write_text(config(1, '{"a": "\\ud800"}'))
    refused = site.run("start", *flags, "-c", str(site.path / "pool.ini"), check=False)

    assert 78 == refused.returncode
    assert "[schedule:tick] data: " in refused.stderr


# Schedules that jobs declare

DECLARING = """
from queuepool import current, job
from tests.support.poolapp import note

@job("{name}"{schedule})
def run() -> None:
    due = current().scheduled_for
    note(event="tick", name="{name}", id=current().id, due=due.isoformat())
"""


def declare(site, *schedules: str) -> None:
    """Write a module with a job for each of these schedules; without one, the job has none."""
    jobs = [DECLARING.format(name=f"job{number}", schedule=one) for number, one in enumerate(schedules)]
    (site.path / "declaring.py").write_text("\n".join(jobs).replace("def run", "def run_it"))


@pytest.mark.by_turns("preload")
@pytest.mark.parametrize("preload", ["--no-preload", "--preload"])
def test_a_job_that_declares_a_schedule_is_pushed_until_a_deploy_removes_it(site, preload):
    declare(site, ', schedule="1s"', ', schedule="0 3 * * *"')
    flags = ("--modules", "declaring", "--workers", "1", preload)  # of two, one may run a later job first
    with site.pool(*flags) as pool:
        has_run(site, 3)
        declare(site, "", ', schedule="0 3 * * *", queue="reports"')
        pool.signal(signal.SIGHUP)
        eventually(lambda: is_quiet(site))
        quiet = len(times(site))
        assert {"job1"} == site.queue.stores.values.marks().keys() - {"job0"}
        declare(site, ', schedule="1s" ')
        pool.signal(signal.SIGHUP)
        has_run(site, quiet + 2)
    ran = times(site)

    assert sorted(set(ran)) == ran
    assert {"job0"} == {line["name"] for line in site.trail(event="tick")}


@pytest.mark.thorough("unit/test_job_schedules.py has which of the two counts")
def test_a_schedule_of_the_configuration_comes_before_that_of_the_job(site):
    declare(site, ', schedule="1s"', ', schedule="1s"')
    config = "[pool]\n[schedule:job0]\nevery = 24h\njob = job0\n"
    with site.pool("--modules", "declaring", config=config):
        has_run(site, 2)

    assert {"job1"} == {line["name"] for line in site.trail(event="tick")}


@pytest.mark.thorough("cli/test_schedule_verbs.py lists and pauses, the test above has a declared one")
def test_a_declared_schedule_is_listed_and_can_be_paused(site):
    declare(site, ', schedule="1s"')
    with site.pool("--modules", "declaring"):
        has_run(site, 1)
        (site.path / "pool.ini").write_text(f"[pool]\nruntime_dir = {site.path}/run\n")
        where = [*site.where, "-c", str(site.path / "pool.ini")]
        assert "job0" in site.run("schedule", "list", *where).stdout
        site.run("schedule", "pause", "job0", *where)
        eventually(lambda: is_quiet(site))
