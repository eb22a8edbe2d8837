"""Chaos runs catch each fault planted in a copy of the package, and pass the package as it is."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos import at_wires
from tests.chaos.checker import VALID, check
from tests.chaos.ledger import read
from tests.chaos.plan import Plan, plan_for
from tests.chaos.plant import Plant
from tests.chaos.plants import PLANTS
from tests.chaos.report import table
from tests.chaos.run import run

#: short runs in which a fault must show itself: some need a coincidence, which a busy machine may not bring at once
RUNS = 6
#: what is special to databases, and the deaths that leave their rows and transactions behind
IN_TABLES = (
    "kill_workers", "kill_host", "laravel", "kill_database", "freeze_database", "cut_transactions", "lose_replies",
    "lock_rows", "deadlock", "hold_the_file", "hold_a_snapshot", "read_only", "disk_full", "late_requests",
    "retry_all", "move_away", "replace_the_file",
)  # fmt: skip
ON_WIRES = tuple(at_wires.NEMESES)


def violations_of(plant: Plant, folder: Path) -> set[str]:
    """What the checker says of the faulty package, run by run until it says what it should."""
    package, found = plant.write(folder), set()
    for seed in range(RUNS):
        place = folder / str(seed)
        place.mkdir()
        found |= set(check(read(run(place, replace(plant.plan, seed=seed), package))).violations)
        if plant.rule in found:
            break
    return found


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Of every planted fault, what is found, to come: a few at a time, they mostly wait."""
    folders = {name: tmp_path_factory.mktemp("planted") for name in PLANTS}  # here: not for several threads at once
    with ThreadPoolExecutor(3) as runs:
        yield {name: runs.submit(violations_of, PLANTS[name], folders[name]) for name in PLANTS}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_caught(name, planted: dict[str, Future]):
    assert PLANTS[name].rule in planted[name].result()


@pytest.mark.timeout(240)
def test_the_package_itself_comes_through_a_minute_of_every_nemesis(tmp_path):
    findings = check(read(run(tmp_path, Plan(seconds=60.0, seed=11, phase=(0.8, 1.8)))))

    assert VALID == findings.code, table(findings)


@pytest.mark.timeout(120)
def test_the_package_comes_through_retries_and_absences_of_a_second_store(tmp_path):
    wanted = ("retry_all", "retry_one", "retry_by_artisan", "other_away", "kill_workers")
    plan = plan_for(
        "redis", other="sqlite", seconds=14.0, seed=1, only=wanted, refused=10.0, phase=(2.0, 4.0), settle=0.5
    )
    findings = check(read(run(tmp_path, plan)))

    assert VALID == findings.code, table(findings)


@pytest.mark.timeout(120)
def test_the_package_comes_through_what_befalls_the_network_between_hosts(tmp_path):
    plan = plan_for(
        "redis", hosts=2, workers=3, remote=3, seconds=12.0, seed=2, only=ON_WIRES, phase=(1.5, 2.5), settle=0.5
    )
    findings = check(read(run(tmp_path, plan)))

    assert VALID == findings.code, table(findings)


@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.timeout(120)
def test_the_package_comes_through_what_befalls_a_database(store, tmp_path):
    # A session of PostgreSQL reports what it has done at most once a second: in less, the idle seem busy.
    plan = plan_for(store, seconds=7.0, seed=3, only=IN_TABLES, phase=(0.6, 1.2), settle=2.0)
    findings = check(read(run(tmp_path, plan)))

    assert VALID == findings.code, table(findings)
