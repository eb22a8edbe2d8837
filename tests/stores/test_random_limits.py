"""Jobs with limits that are started, ended, given back and lost in any order: the laws of ``docs/limits.md`` hold.

Never more run than there are places, no start is too early for its rate, no place is at rest while somebody waits, no
job is lost or stuck, and none loses a try by waiting.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queuepool.stores.factory import Stores
from tests.support.drivers import connection_of, opened
from tests.support.limit_laws import Trial

STEPS = 40


@pytest.fixture(params=["redis", "sqlite"])
def built(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with opened(connection_of(request.param, request)) as stores:
        yield stores


@pytest.mark.every_store("built")
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.thorough("more seeds")) for seed in range(2, 20))]
)
def test_the_laws_hold(built, seed):
    Trial(built, seed).run(STEPS)
