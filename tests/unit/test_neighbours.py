"""What a pool that scales makes of the notices of others: who takes jobs, how many at once, and for how long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from queuepool.board.overview import JobRow, PoolOverview, ProcessRow, ScalingRow
from queuepool.errors import StoreDenied, StoreDown
from queuepool.steward.neighbours import KnowNeighbours
from queuepool.steward.share import Bid, turn_at
from tests.support.each import each

STORES_TIME = 1_790_000_000.0
WORKERS = (
    ProcessRow(role="worker", number=1, state="busy", jobs=(JobRow(name="j", id="1", queue="default"),)),
    ProcessRow(role="worker", number=2, state="busy", jobs=(JobRow(name="j", id="2", queue="mail"),)),
    ProcessRow(role="worker", number=3, state="idle"),
)
SCALES = ScalingRow(fewest=1, most=8)


def notice(host: str = "b", ago: float = 0.0, **facts: Any) -> dict[str, Any]:
    """Of a pool with three workers, which may have eight; one runs a job of ``default``, one a job of ``mail``."""
    row = {"pool": "p", "state": "running", "workers": 3, "scaling": SCALES, "processes": WORKERS}
    shown = PoolOverview(**{**row, **{name: facts.pop(name) for name in list(facts) if name in _ROWS}})
    about = {"host": host, "id": host, "queues": ["default", "mail"], "concurrency": 1, "at": STORES_TIME - ago}
    found = {**shown.to_json(), **about, **facts}
    return dict(json.loads(json.dumps({name: value for name, value in found.items() if value is not ...})))


_ROWS = set(PoolOverview.__slots__)


def bids(*notices: dict[str, Any], now: float = 100.0) -> list[Bid]:
    known = KnowNeighbours("a", ["default", "low"], lambda: notices, lambda: STORES_TIME)
    known.run(100.0)
    return [*known.bids("default", now)]


def test_a_pool_that_scales_has_room_up_to_its_bound_without_what_it_runs_of_others():
    assert [Bid("b", 8, 7.0, 6.0)] == bids(notice())


@each(
    ("facts", "weight", "room", "grows"),
    [
        ({"concurrency": 5}, 40, 39.0, True),
        ({"scaling": None}, 3, 2.0, False),
        ({"scaling": ScalingRow(fewest=1, most=8, pinned=True, held="order")}, 3, 2.0, False),
        ({"scaling": ScalingRow(fewest=1, most=8, held="memory")}, 8, 2.0, False),
        ({"scaling": ScalingRow(fewest=1, most=8, held="boot")}, 8, 2.0, False),
        ({"scaling": ScalingRow(fewest=1, most=8, held="silence")}, 8, 2.0, False),
        ({"scaling": ScalingRow(fewest=1, most=8, held="max_workers")}, 8, 7.0, True),
        ({"scaling": ScalingRow(fewest=1, most=3)}, 3, 2.0, False),  # at its bound
        ({"jobs_left_out": 6}, 8, 4.0, True),  # half of eight jobs are of another queue
        ({"remote": "off"}, 8, 7.0, True),  # it takes no commands, but jobs
        ({"processes": (ProcessRow(role="worker", number=1, state="starting"),)}, 8, 8.0, True),
    ],
)
def test_what_a_pool_can_take_on(facts, weight, room, grows):
    [found] = bids(notice(**facts))

    assert (weight, room, grows) == (found.weight, found.room, found.grows)


@each(
    "facts",
    [
        {"state": "paused"},
        {"state": "draining"},
        {"state": "stopped by a signal"},
        {"workers": 0},
        {"maintenance": True, "processes": (ProcessRow(role="worker", number=1, state="paused"),)},
        {"processes": (ProcessRow(role="worker", number=1, state="starting"),), "boot_problem": "no module"},
        {"processes": (ProcessRow(role="worker", number=1, state="dead"),)},
        {"paused": ["default"]},
        {"queues": ["mail"]},
        {"beat_age": 60.0},
        {"ago": 31.0},
        {"id": "a"},  # its own
    ],
)
def test_a_pool_that_takes_no_jobs_of_the_queue_has_no_part(facts):
    assert [] == bids(notice(**facts))


@pytest.mark.bad_input("B168")
@each(
    "facts",
    [
        {"queues": ...},
        {"queues": "default"},
        {"queues": [1, None, "default"]},
        {"processes": "none"},
        {"scaling": {"most": "8"}},
        {"scaling": {"most": -(10**400)}, "workers": -5},
        {"state": 7},
        {"processes": [{"role": "worker", "state": "idle", "jobs": [{"name": 1}]}]},
    ],
)
def test_a_notice_that_no_pool_has_written_is_none(facts):
    whole = notice()
    whole.update(facts)

    assert [] == bids({name: value for name, value in whole.items() if value is not ...})


@pytest.mark.bad_input("B168")
@each("facts", [{"concurrency": 10**400}, {"workers": 10**400}, {"jobs_left_out": 10**400}, {"concurrency": -1}])
def test_numbers_of_any_size_lead_to_some_bid(facts):
    [found] = bids(notice() | facts)

    assert 0 < found.weight <= 1024 * 1000  # as many as any pool may have


def test_an_older_version_says_what_its_workers_run_at_once_by_what_they_run():
    lanes = tuple(JobRow(name="j", id=str(number), queue="default") for number in range(4))
    rows = (ProcessRow(role="worker", number=1, state="busy", jobs=lanes),)

    assert 8 * 4 == bids(notice(concurrency=..., processes=rows))[0].weight
    assert 8 == bids(notice(concurrency=...))[0].weight


def test_of_two_notices_of_a_pool_the_newer_one_counts():
    [found] = bids(notice(), notice(ago=5.0, workers=0))

    assert 8 == found.weight


@each(("ago", "lasts"), [(0.0, 30.0), (20.0, 10.0)])
def test_a_pool_that_publishes_no_more_is_gone_when_its_notice_has_lapsed(ago, lasts):
    one = notice(ago=ago)

    assert 1 == len(bids(one, now=100.0 + lasts - 0.5))
    assert [] == bids(one, now=100.0 + lasts + 0.5)


def test_a_pool_that_was_short_of_memory_is_expected_to_be_for_a_while():
    """As soon as others take its part it wants no more, and says so: its part would come and go."""
    told = [notice(scaling=ScalingRow(fewest=1, most=8, held="memory"))]
    known = KnowNeighbours("a", ["default"], lambda: told, lambda: STORES_TIME)
    known.run(100.0)
    told[:] = [notice()]
    grows = []
    for now in (105.0, 155.0, 165.0):
        known.run(now)
        grows += [bid.grows for bid in known.bids("default", now)]

    assert [False, False, True] == grows


def test_the_first_looks_follow_each_other_soon_as_all_hosts_may_have_begun_at_one_time():
    known = KnowNeighbours("a", ["default"], list, lambda: STORES_TIME)

    assert [1.0, 1.0, 1.0, 1.0, 5.0, 5.0] == [known.run(float(now)) for now in range(6)]


@pytest.mark.thorough("it takes a second of a processor; the test before it has how often a store is asked")
def test_a_slow_store_is_asked_less_often_but_before_what_is_known_has_lapsed():
    def slowly() -> list[dict[str, Any]]:
        while time.process_time() < until:
            pass
        return [notice(ago=5.0)]

    known = KnowNeighbours("a", ["default"], slowly, lambda: STORES_TIME)
    pauses = []
    for seconds in (0.1, 1.1):
        until = time.process_time() + seconds
        pauses.append(known.run(100.0))

    assert 2.0 <= pauses[0] <= pauses[1] == 20.0
    assert known.bids("default", 100.0 + pauses[1])


def test_all_pools_have_the_same_turn_whatever_their_own_clocks_say():
    known = [KnowNeighbours(name, ["default"], list, lambda: STORES_TIME + 0.5) for name in "ab"]
    for one, now in zip(known, (100.0, 7_000.0), strict=True):
        one.run(now)

    assert known[0].turn(103.0) == known[1].turn(7_003.0) == turn_at(STORES_TIME + 3.5)


def test_where_notices_may_not_be_read_a_pool_is_alone_once_those_it_knows_have_lapsed():
    def refuse() -> list[dict[str, Any]]:
        if is_refused:
            raise StoreDenied("no right to read")
        return [notice()]

    is_refused = False
    known = KnowNeighbours("a", ["default"], refuse, lambda: STORES_TIME)
    known.run(100.0)
    is_refused = True
    known.run(105.0)

    assert [1, 0] == [len(known.bids("default", now)) for now in (106.0, 131.0)]


def test_a_store_that_is_away_is_told_to_the_steward():
    def silent() -> list[dict[str, Any]]:
        raise StoreDown("no answer")

    with pytest.raises(StoreDown):
        KnowNeighbours("a", ["default"], silent, lambda: STORES_TIME).run(100.0)
