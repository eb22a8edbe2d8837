"""Chaos runs catch each fault planted in a copy of the package, and pass the package as it is."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path

import pytest

from tests.chaos import at_wires
from tests.chaos.checker import Findings, check
from tests.chaos.ledger import read
from tests.chaos.plan import Plan, plan_for
from tests.chaos.plant import Plant
from tests.chaos.plants import PLANTS
from tests.chaos.report import brief, table
from tests.chaos.run import run
from tests.chaos.world import ROOT

#: short runs in which a fault must show itself: some need a coincidence, which a busy machine may not bring at once
RUNS = 6
#: seconds; likewise, where the machine is so busy that six runs bring it rarely
TRIES = 200.0
#: seconds by which each run is longer than the one before: on a busy machine little happens in the time of a short one
MORE = 2.0
#: what is special to databases, and the deaths that leave their rows and transactions behind
IN_TABLES = (
    "kill_workers", "kill_host", "laravel", "kill_database", "freeze_database", "cut_transactions", "lose_replies",
    "lock_rows", "deadlock", "hold_the_file", "hold_a_snapshot", "read_only", "disk_full", "late_requests",
    "retry_all", "move_away", "replace_the_file",
)  # fmt: skip
ON_WIRES = tuple(at_wires.NEMESES)
#: faults that are caught soon, which every run plants, to see that a run shows what a checker finds: one in what a
#: worker does, in a deadline, in who is blamed for a death and in what follows. The rules of each family have tests on
#: written histories.
ALWAYS = {
    "settled before it ran": "what is lost",
    "alarm heard by Python alone": "deadlines",
    "death that uses up the only try": "blame",
    "outcome pushed before its job ends": "outcomes",
}


def changed() -> set[str]:
    """The files of the package that differ from the last commit."""
    command = ["git", "-C", str(ROOT), "diff", "--name-only", "HEAD", "--", "queuepool"]
    return set(subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.split())


def planted_in(plant: Plant) -> set[str]:
    return {f"queuepool/{name}" for name, _, _ in plant.edits}


def plants() -> list[object]:
    """Names for ``parametrize``: most are left to ``--all``, unless their source has changed."""
    others = pytest.mark.thorough("the rules of the checker have tests on written histories")
    differing = changed()
    return [
        name if name in ALWAYS or planted_in(plant) & differing else pytest.param(name, marks=others)
        for name, plant in PLANTS.items()
    ]


def violations_of(plant: Plant, folder: Path) -> tuple[set[str], list[str]]:
    """What the checker says of the faulty package, run by run until it says what it should; and a line on each run."""
    package, found, told, begun = plant.write(folder), set[str](), list[str](), time.monotonic()
    for seed in takewhile(lambda seed: seed < RUNS or time.monotonic() - begun < TRIES, count()):
        place = folder / str(seed)
        place.mkdir()
        plan = replace(plant.plan, seed=seed, seconds=plant.plan.seconds + seed * MORE)
        ruling = check(read(run(place, plan, package)))
        found |= {*ruling.violations, *ruling.doubted}  # a plant is caught also where others crowd the machine
        told.append(brief(ruling))
        if plant.rule in found:
            break
    return found, told


@pytest.fixture(scope="module")
def planted(request, tmp_path_factory):
    """Of every fault that this run plants, what is found, to come: a few at a time, they mostly wait."""
    names = {item.callspec.params["name"] for item in request.session.items if is_about_a_plant(item)}
    folders = {name: tmp_path_factory.mktemp("planted") for name in names}  # here: not for several threads at once
    runs = ThreadPoolExecutor(3)
    try:
        yield {name: runs.submit(violations_of, PLANTS[name], folders[name]) for name in PLANTS if name in names}
    finally:
        runs.shutdown(cancel_futures=True)  # an interrupted run does not wait for those that have not begun


def is_about_a_plant(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and item.function is test_a_planted_fault_is_caught


def require_sound(findings: Findings) -> None:
    """The run has an end, and nothing in it is against the package; what a crowded machine hides is not."""
    assert {} == findings.violations, table(findings)
    assert len(findings.doubted) == len(findings.unknown), table(findings)


def test_every_run_plants_faults_that_there_are():
    assert set() == set(ALWAYS) - set(PLANTS)


def test_every_fault_has_its_place_in_the_code():
    assert {} == {name: misfits for name, plant in PLANTS.items() if (misfits := plant.misfits)}


@pytest.mark.timeout(2 * TRIES)
@pytest.mark.parametrize("name", plants())
def test_a_planted_fault_is_caught(name, planted: dict[str, Future]):
    found, told = planted[name].result()

    assert PLANTS[name].rule in found, "\n".join(told)


@pytest.mark.timeout(300)
def test_the_package_itself_comes_through_a_few_seconds_of_every_nemesis(tmp_path):
    findings = check(
        read(run(tmp_path, Plan(seconds=6.0, seed=12, phase=(0.3, 0.5), rate=60.0, backlog=200, bulk=30, settle=1.0)))
    )

    require_sound(findings)


@pytest.mark.thorough("a shorter run is part of every one")
@pytest.mark.timeout(400)
def test_the_package_itself_comes_through_a_minute_of_every_nemesis(tmp_path):
    findings = check(read(run(tmp_path, plan_for("redis", slower=True, seconds=60.0, seed=11, phase=(0.8, 1.8)))))

    require_sound(findings)


@pytest.mark.thorough("the tests of kept attempts hold each fault by itself")
@pytest.mark.timeout(180)
def test_the_package_comes_through_every_nemesis_with_a_record_of_each_attempt(tmp_path):
    findings = check(
        read(run(tmp_path, plan_for("redis", slower=True, seconds=25.0, seed=9, phase=(0.8, 1.8), records=True)))
    )

    require_sound(findings)


@pytest.mark.thorough("the tests of workers that run jobs side by side hold each fault by itself")
@pytest.mark.timeout(300)
def test_the_package_comes_through_every_nemesis_with_jobs_side_by_side(tmp_path):
    findings = check(
        read(run(tmp_path, plan_for("redis", slower=True, seconds=25.0, seed=5, lanes=20, phase=(0.8, 1.8))))
    )

    require_sound(findings)


@pytest.mark.thorough("the tests of two stores hold each fault by itself")
@pytest.mark.timeout(300)
def test_the_package_comes_through_retries_and_absences_of_a_second_store(tmp_path):
    wanted = ("retry_all", "retry_one", "retry_by_artisan", "other_away", "kill_workers")
    plan = plan_for(
        "redis", other="sqlite", seconds=14.0, seed=1, only=wanted, refused=10.0, phase=(2.0, 4.0), settle=0.5
    )
    findings = check(read(run(tmp_path, plan)))

    require_sound(findings)


@pytest.mark.thorough("the tests of cancelled jobs hold each moment by itself")
@pytest.mark.timeout(300)
def test_the_package_comes_through_cancellations_at_any_moment(tmp_path):
    plan = plan_for("redis", seconds=8.0, seed=4, only=("cancel_jobs",), phase=(30.0, 30.0), settle=0.5)
    findings = check(read(run(tmp_path, plan)))

    require_sound(findings)
    assert findings.counts["cancelled"], table(findings)


@pytest.mark.thorough("the tests of late and lost requests hold each fault by itself")
@pytest.mark.timeout(300)
def test_the_package_comes_through_what_befalls_the_network_between_hosts(tmp_path):
    plan = plan_for(
        "redis", hosts=2, workers=3, remote=3, seconds=12.0, seed=2, only=ON_WIRES, phase=(1.5, 2.5), settle=0.5
    )
    findings = check(read(run(tmp_path, plan)))

    require_sound(findings)


@pytest.mark.thorough("the contract holds each fault of a database by itself")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.timeout(300)
def test_the_package_comes_through_what_befalls_a_database(store, tmp_path):
    # A session of PostgreSQL reports what it has done at most once a second: in less, the idle seem busy.
    plan = plan_for(store, seconds=7.0, seed=3, only=IN_TABLES, phase=(0.6, 1.2), settle=4.0)
    findings = check(read(run(tmp_path, plan)))

    require_sound(findings)
