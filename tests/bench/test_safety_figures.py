"""The workers measured for the cost of safety differ only in what is left out."""

from __future__ import annotations

import pytest

from tests.bench import without
from tests.bench.rig import redis_rig


def test_all_that_is_left_out_is_there_to_be_left_out():
    assert [] == without.unknown()


@pytest.mark.thorough("of the programs that measure")
@pytest.mark.by_turns("part")
@pytest.mark.parametrize("part", ["hand", "fences", "leases", "watch"])
def test_a_pool_without_it_runs_its_jobs_and_holds_nothing(part: str):
    with redis_rig() as rig, rig.pool(1, program=["tests.bench.without", part]):
        worker = rig.family()[-1]
        rig.drain(50)
        assert "worker" in worker.cmdline()[0]
        assert worker == rig.family()[-1]
