"""What a steward measures of limits: how many wait, for how long, and whether a place is free meanwhile."""

from __future__ import annotations

import time
from typing import Any

import pytest

from queuepool.board.board import Board
from queuepool.board.counts import LimitFacts, counts_of, parked_in
from queuepool.board.meters import MOST_LIMITS, MeterMemory
from queuepool.board.status import overview
from queuepool.jobs.client import Queue
from queuepool.payload.limits import PlaceAsked, holding
from queuepool.steward.limits import MeasureLimits
from queuepool.steward.measure import Measure, PoolMeters
from queuepool.stores.factory import Stores
from tests.support.drivers import DATABASES, connection_of
from tests.support.samples import ids, new_jobs, payload

pytestmark = pytest.mark.every_store("stores")


@pytest.fixture(params=["redis", *DATABASES])
def stores(request: pytest.FixtureRequest) -> Any:
    queue = Queue(connection_of(request.param, request))
    yield queue.stores
    queue.close()


@pytest.fixture
def board() -> Board:
    found = Board.private()
    found.meters = MeterMemory.new(1, 1)
    return found


def measure(stores: Stores, board: Board) -> MeasureLimits:
    assert board.meters is not None
    stores.limits.in_use = True
    return MeasureLimits(stores.limits, board.header, PoolMeters(board.meters, ["default"]), stores.queue.now)


def wait_at(stores: Stores, *names: str, limit: str = "gpu", number: int = 1) -> None:
    stores.queue.push("default", new_jobs(*map(payload, names)))
    tag = stores.queue.join()
    for lease in map(holding, stores.queue.reserve(["default"], tag, len(names)).leases):
        stores.limits.enter(lease, ids([lease])[0], [PlaceAsked(limit, "-", number)])


def test_a_pool_without_limits_asks_nothing(stores, board):
    wait_at(stores, *"ab")
    measure(stores, board).run(0.0)

    assert {} == counts_of(board).limits


def test_who_waits_is_measured_by_limit(stores, board):
    wait_at(stores, *"abc")
    board.header.limits_at = time.monotonic()
    chore = measure(stores, board)
    chore.run(0.0)
    chore.run(100.0)

    found = counts_of(board).limits["gpu"]
    assert LimitFacts(1, 1, 2) == found._replace(oldest=0.0)
    assert found.oldest >= 0.0
    stores.limits.set("gpu", 5)
    chore.run(200.0)
    chore.run(300.0)
    found = counts_of(board).limits["gpu"]
    assert (5, 100.0) == (found.number, found.unused), "nobody has handed the places on"
    stores.limits.sweep("gpu")
    chore.run(400.0)
    assert LimitFacts(5, 1) == counts_of(board).limits["gpu"]


@pytest.mark.thorough("more limits than the board has rows")
def test_limits_beyond_those_that_have_rows_are_left_out(stores, board):
    for number in range(MOST_LIMITS + 5):
        wait_at(stores, *(f"{number}.{one}" for one in range(3)), limit=f"limit-{number:02}")
    wait_at(stores, "more", limit="limit-24")
    board.header.limits_at = time.monotonic()
    measure(stores, board).run(0.0)

    names = [*counts_of(board).limits]
    assert MOST_LIMITS == len(names)
    assert "limit-24" == names[0], "at which most wait"


def test_the_pools_status_counts_what_is_parked(stores, board):
    wait_at(stores, *"abc")
    assert board.meters is not None
    meters = PoolMeters(board.meters, ["default"])
    Measure(meters, stores.queue, lambda: 0, count_parked=stores.limits.parked).run(0.0)
    assert 0 == overview("p", board).parked, "not read in a pool that has run no job with a limit"

    board.header.limits_at = time.monotonic()
    assert 2 == parked_in(board) == overview("p", board).parked
