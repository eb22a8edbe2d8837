"""Chaos runs: faults planted in a copy of the package are caught, and the package as it is comes through."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.chaos.checker import VALID, check
from tests.chaos.ledger import read
from tests.chaos.plan import Plan
from tests.chaos.plants import PLANTS
from tests.chaos.report import table
from tests.chaos.run import run


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The findings of every planted fault, to come: two runs at a time, they mostly wait."""

    folders = {name: tmp_path_factory.mktemp("planted") for name in PLANTS}  # here: not for several threads at once

    def ruled(name):
        folder = folders[name]
        (folder / "run").mkdir()
        return check(read(run(folder / "run", PLANTS[name].plan, PLANTS[name].write(folder))))

    with ThreadPoolExecutor(3) as runs:
        yield {name: runs.submit(ruled, name) for name in PLANTS}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_caught(name, planted: dict[str, Future]):
    assert PLANTS[name].rule in planted[name].result().violations


def test_the_package_itself_comes_through_a_short_run(tmp_path):
    findings = check(read(run(tmp_path, Plan(seconds=12.0, seed=11, phase=(0.7, 1.5)))))

    assert VALID == findings.code, table(findings)
