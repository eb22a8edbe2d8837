"""The figures of limits are what their page says they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.limits import through
from tests.bench.limits.__main__ import world
from tests.bench.limits.parked_behind import Line
from tests.bench.peers.holding import Moment, held, hold, moments, waits
from tests.bench.peers.limited import figures


def test_a_place_is_free_from_the_end_of_its_job_to_the_beginning_of_the_next():
    first, second = (Moment(0, 0.0, 7, 1), Moment(0, 1.0, 7, 0)), (Moment(1, 0.0, 8, 1), Moment(1, 5.0, 8, 0))
    third = Moment(2, 1.25, 7, 3), Moment(2, 6.0, 7, 0)
    found = sorted((*first, *second, *third), key=lambda one: one.at)

    assert [0.25] == waits(found, 2)
    assert 2 == max(held(found))
    began, _, most, _, free, longest, attempts = figures(found)
    assert ("3", "2", "250.0", "250") == (began, most, free, longest)
    assert "1.7, at most 3" == attempts


def test_a_limit_that_was_not_kept_shows():
    found = [Moment(0, 0.0, 7, 1), Moment(1, 0.1, 8, 1), Moment(0, 1.0, 7, 0), Moment(1, 1.1, 8, 0)]

    assert 2 == max(held(found))
    assert [pytest.approx(-0.9)] == waits(found, 1)


def test_a_job_notes_when_it_holds_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCH_TRAIL", f"{tmp_path}/trail")
    hold(3, 0.0, 2)

    begin, end = moments(tmp_path / "trail")
    assert (3, os.getpid(), 2) == (begin.n, begin.pid, begin.attempt)
    assert (3, os.getpid(), 0) == (end.n, end.pid, end.attempt)
    assert begin.at <= end.at


@pytest.mark.by_turns("store", "partitions")
@pytest.mark.parametrize("store", ["redis", "sqlite"])
@pytest.mark.parametrize("partitions", [1, 5])
def test_each_start_among_parked_jobs_leaves_as_many(store: str, partitions: int):
    with world(store) as rig:
        line = Line(rig, "line-1", partitions)
        line.park(19)
        for _ in range(30):
            assert line.next() > 0

        assert 20 == rig.queue.parked("line-1")
        assert {"line-1": 1} == {one.key: one.held for one in rig.stores.queue.limits.by_key()}


@pytest.mark.thorough("it measures; that such a flood ends is in test_limits_at_once")
def test_a_flood_through_one_place_is_watched_to_its_end(capsys: pytest.CaptureFixture[str]):
    with world("redis") as rig:
        through.measure(rig, 200)

    said = capsys.readouterr().out
    assert "98% begun" in said
    assert 10 == said.rpartition("tenths of the jobs: ")[2].count(",") + 1
