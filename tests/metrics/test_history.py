"""The history: from counters to texts, and from texts to what was gained."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from string import ascii_letters
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.board.board import Board
from queuepool.board.counts import NO_RUNS, Histogram, JobCounts, PoolCounts, QueueFacts, counts_of
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.history.past import HistorySpan, Past, past_of
from queuepool.history.rollup import GRAINS, LONGEST, MAX_QUEUES, MAX_SERIES, KeptSizes, Rollup, rollup_of
from queuepool.operating.past_report import counts_of_tally
from queuepool.steward.measure import PoolMeters
from queuepool.stores.values import MAX_KEPT, Kept
from queuepool.worker.meter import Meter
from tests.support.each import each
from tests.support.full_counts import COUNTS

NOW = 1_790_000_030.0
HOUR = HistorySpan.until(NOW, 3600.0)
FIRST, LAST = HOUR.buckets[0], HOUR.buckets[-1]


def counts(done: int, **more: int) -> PoolCounts:
    runs = Histogram((done, *NO_RUNS.counts[1:]), done * 0.001)
    return PoolCounts(jobs={("q", "j"): JobCounts(done=done, run=runs, **more)})


def kept(bucket: int, done: int, writer: str = "a:p:1", since: float = 1.0, **more: int) -> Kept:
    return Kept(bucket, writer, rollup_of(since, counts(done, **more)).text().encode())


def of_pool(bucket: int, writer: str = "a:p:1", since: float = 1.0, **facts: Any) -> Kept:
    return Kept(bucket, writer, rollup_of(since, PoolCounts(**facts)).text().encode())


def done_in(past: Past) -> dict[int, int]:
    return {at: tallies["q", "j"].counts[0] for at, tallies in past.gained.items() if tallies}


# Texts


def test_a_text_says_what_the_counters_said():
    rollup = rollup_of(5.0, COUNTS)

    assert rollup == Rollup.read(rollup.text().encode())
    assert sum(one.ended for one in rollup.tallies.values()) == sum(one.ended for one in COUNTS.jobs.values())
    assert {"high": KeptSizes(3, 1, 2, 0, 4.5)} == rollup.queues  # "low" was never measured
    assert (1, 2) == (rollup.events[-4], rollup.events[-1])


def test_the_largest_text_of_a_pool_fits():
    """With as many names as it has places, each as long as can be, and every bucket filled with many digits."""

    def word(length: int) -> str:
        return "".join(drawn.choices(ascii_letters, k=length))

    def full() -> JobCounts:
        many = [drawn.randrange(10**9) for _ in range(45)]
        return JobCounts(*many[:9], run=Histogram((*many[9:28],), 1e9 / 7), wait=Histogram((*many[28:],), 1e9 / 7))

    drawn = random.Random(1)
    jobs = {(word(200), word(190)): full() for _ in range(400)}
    queues = {word(200): QueueFacts(10**9, ready, 10**9, 10**9, 1e9 / 7, measured_at=1.0) for ready in range(700)}
    rollup = rollup_of(1e9, PoolCounts(jobs=jobs, queues=queues))
    text = rollup.fitting(MAX_KEPT)
    found = Rollup.read(text.encode())

    assert (MAX_SERIES, MAX_QUEUES, 200) == (len(rollup.tallies), len(rollup.queues), rollup.left_out)
    assert MAX_KEPT >= len(text)
    assert rollup.tallies == found.tallies
    assert 0 < len(found.queues) == 700 - found.left_out
    assert list(queues)[-len(found.queues) :][::-1] == list(found.queues)  # the fullest


def test_a_pool_of_many_queues_has_them_all_and_says_which_places_it_lacks():
    queues = {f"tenant-{number:03}": QueueFacts(ready=number, measured_at=1.0) for number in range(501)}
    few, many = dict(list(queues.items())[:300]), queues

    assert 0 == past_of(HOUR, [of_pool(LAST, queues=few)]).left_out
    assert {*few} == set(past_of(HOUR, [of_pool(LAST, queues=few)]).by_queue())
    assert 1 == past_of(HOUR, [of_pool(LAST, queues=many)]).left_out
    assert "tenant-000" not in past_of(HOUR, [of_pool(LAST, queues=many)]).by_queue()


def test_no_counter_moves_to_another_series_while_names_come(tmp_path):
    """Of a pool of many queues only the names used first have a place: else a total would fall, or rise by itself."""
    queues = [f"q{number}" for number in range(50)]
    board = Board.create(tmp_path / "board.1-1", 1)
    board.meters = MeterMemory.new(1, len(queues))
    worker, texts = Meter(SlotMeters(board.meters, board.slots[0])), []
    PoolMeters(board.meters, queues)
    for at in range(10):
        for number in range(50):
            worker.turn(queues[number], f"job{at}")
            worker.done(0.0)
        texts.append(rollup_of(1.0, counts_of(board)))

    assert [50] * 9 == [sum(one.ended for one in b.minus(a).tallies.values()) for a, b in pairwise(texts)]


GOOD = json.loads(rollup_of(5.0, counts(3)).text())


def test_what_was_cancelled_is_not_lost_and_older_versions_read_it_as_before():
    killed = rollup_of(5.0, counts(3, failed=4, crash=1, timeout=1, cancelled=2))
    text = json.loads(killed.text())
    [tally] = killed.tallies.values()

    assert {"done": 3, "failed": 4, "lost": 2, "cancelled": 2} == {k: v for k, v in counts_of_tally(tally).items() if v}
    assert killed == Rollup.read(killed.text().encode())
    assert (4, [2]) == (text["series"][0][6], text["cancelled"])
    assert "cancelled" not in GOOD
    del text["cancelled"]  # as they write it
    [older] = Rollup.read(json.dumps(text).encode()).tallies.values()
    assert (4, 0) == older.counts[-2:]


@pytest.mark.bad_input("B148")
@each(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"z",
        b"z!!!",
        b"zAAAA",
        b"[" * 100_000,
        json.dumps({**GOOD, "since": "1"}).encode(),
        json.dumps({**GOOD, "since": float("nan")}).encode(),
        json.dumps({**GOOD, "since": 10**400}).encode(),
        json.dumps({**GOOD, "series": GOOD["series"] * 300}).encode(),
        json.dumps({**GOOD, "series": [[1]]}).encode(),
        json.dumps({**GOOD, "series": [["q" * 201, *GOOD["series"][0][1:]]]}).encode(),
        json.dumps({**GOOD, "series": [["q", "j", -1, *GOOD["series"][0][3:]]]}).encode(),
        json.dumps({**GOOD, "series": [["q", "j", 2**53, *GOOD["series"][0][3:]]]}).encode(),
        json.dumps({**GOOD, "series": [["q", "j", True, *GOOD["series"][0][3:]]]}).encode(),
        json.dumps({**GOOD, "series": [[*GOOD["series"][0][:8], [99, 1], 0.0, []]]}).encode(),
        json.dumps({**GOOD, "series": [[*GOOD["series"][0][:8], [0], 0.0, []]]}).encode(),
        json.dumps({**GOOD, "cancelled": [1]}).encode(),
        json.dumps({**GOOD, "cancelled": [0, 0]}).encode(),
        json.dumps({**GOOD, "cancelled": 1}).encode(),
        json.dumps({**GOOD, "events": []}).encode(),
        json.dumps({**GOOD, "events": [-1, *GOOD["events"][1:]]}).encode(),
        json.dumps({**GOOD, "queues": [["q", 1, 1, 1, 1]]}).encode(),
        json.dumps({**GOOD, "queues": [["q", 1, 1, 1, 1, float("inf")]]}).encode(),
        json.dumps({**GOOD, "queues": [[str(number), 1, 1, 1, 1, 1.0] for number in range(MAX_QUEUES + 1)]}).encode(),
    ],
)
def test_a_text_that_makes_no_sense_is_left_out_and_counted(text):
    past = past_of(HOUR, [kept(FIRST, 1), Kept(FIRST + 60, "a:p:1", text), kept(FIRST + 120, 4)])

    assert ({FIRST + 120: 3}, 1) == (done_in(past), past.ignored)


@pytest.mark.bad_input("B148")
@given(text=st.binary(max_size=300) | st.binary(max_size=300).map(lambda raw: b"z" + raw))
def test_any_bytes_are_read_or_counted(text):
    past = past_of(HOUR, [Kept(FIRST, "a", text)])

    assert past.ignored in (0, 1)


@pytest.mark.bad_input("B148")
def test_a_text_that_unpacks_to_much_is_left_out():
    import base64
    import zlib

    bomb = b"z" + base64.b64encode(zlib.compress(b'{"since": 1.0, "series": []' + b" " * (1 << 21) + b"}"))

    assert 1 == past_of(HOUR, [Kept(FIRST, "a", bomb)]).ignored


# What was gained


def test_a_range_is_cut_into_the_finest_buckets_that_are_kept_for_so_long():
    spans = {
        name: HistorySpan.until(NOW, seconds) for name, seconds in {"1h": 3600, "24h": 86400, "35d": LONGEST}.items()
    }

    assert {"1h": (60, 60), "24h": (600, 144), "35d": (3600, 840)} == {
        name: (span.grain.seconds, len(span.buckets)) for name, span in spans.items()
    }
    assert all(span.buckets[-1] <= NOW < span.buckets[-1] + span.grain.seconds for span in spans.values())


def test_each_bucket_has_what_came_since_the_one_before():
    texts = [kept(FIRST - 60, 10), kept(FIRST, 12), kept(FIRST + 60, 12), kept(LAST, 20)]

    assert {FIRST: 2, FIRST + 60: 0, LAST: 8} == done_in(past_of(HOUR, texts))


def test_all_that_a_pool_did_that_began_in_the_range_is_in_it():
    assert {LAST: 7} == done_in(past_of(HOUR, [kept(LAST, 7, since=LAST - 10.0)]))


def test_of_a_pool_that_is_older_than_all_that_is_known_the_first_text_only_begins():
    assert {FIRST + 60: 2} == done_in(past_of(HOUR, [kept(FIRST, 100), kept(FIRST + 60, 102)]))


def test_several_pools_add_up_in_any_order():
    texts = [kept(bucket, done, writer) for writer in "ab" for bucket, done in ((FIRST, 1), (FIRST + 60, 3), (LAST, 4))]

    assert {FIRST + 60: 4, LAST: 2} == done_in(past_of(HOUR, reversed(texts)))


@pytest.mark.bad_input("B148")
def test_a_counter_that_has_fallen_is_left_out():
    past = past_of(HOUR, [kept(FIRST, 5), kept(FIRST + 60, 4), kept(FIRST + 120, 6)])
    fallen = past_of(HOUR, [of_pool(FIRST, exits={"crash": 2}), of_pool(FIRST + 60, exits={"crash": 1})])

    assert ({FIRST + 120: 1}, 1) == (done_in(past), past.ignored)
    assert ({}, 1) == (fallen.event_totals(), fallen.ignored)


def test_events_are_added_up_and_queues_are_as_they_were_and_the_larger_of_what_two_pools_have_measured():
    texts = [
        of_pool(FIRST - 60, exits={"crash": 1}, outages=1),
        of_pool(FIRST, exits={"crash": 3}, outages=1, queues={"q": QueueFacts(ready=5, oldest=9.0, measured_at=1.0)}),
        of_pool(LAST, "b:p:2", since=LAST, exits={"crash": 1}, queues={"q": QueueFacts(ready=1, measured_at=1.0)}),
        of_pool(
            LAST, exits={"crash": 3, "restart": 1}, outages=2, queues={"q": QueueFacts(delayed=2, measured_at=1.0)}
        ),
    ]
    past = past_of(HOUR, texts)

    assert {"restart": 1, "crash": 3, "store_lost": 1} == past.event_totals()
    assert {"q": [KeptSizes(ready=5, oldest=9.0), KeptSizes(ready=1, delayed=2)]} == past.by_queue()


def test_totals_are_those_of_all_buckets():
    totals = past_of(HOUR, [kept(FIRST - 60, 0), kept(FIRST, 2, failed=1), kept(LAST, 5, failed=2)]).totals()

    assert (5, 2, 7) == (totals["q", "j"].counts[0], totals["q", "j"].counts[2], totals["q", "j"].ended)
    assert 5 == totals["q", "j"].run.observations


def test_grains_are_kept_for_as_many_buckets_as_said():
    assert [120, 288, 840] == [grain.kept / grain.seconds for grain in GRAINS]


def test_a_rate_is_over_the_time_in_which_there_was_a_pool():
    young = past_of(HOUR, [kept(LAST, 7, since=NOW - 120.0)])
    old = past_of(HOUR, [kept(FIRST - 60, 0), kept(LAST, 7)])

    assert 2.0 == young.minutes(FIRST, NOW)
    assert (NOW - FIRST) / 60.0 == old.minutes(FIRST, NOW)
    assert 1.0 == young.minutes(FIRST, FIRST + 60.0)
    assert 60.0 == Past({}, 0).minutes(0.0, 3600.0)
