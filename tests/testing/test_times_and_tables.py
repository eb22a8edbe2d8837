"""``next_times`` and ``make_tables``: a job's schedule and the queue's tables in an application's tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from queuepool import Job, connect, job
from queuepool.errors import StoreDenied
from queuepool.testing import make_tables, next_times
from tests.support.each import each
from tests.testing.jobs import welcome

BERLIN = ZoneInfo("Europe/Berlin")
TABLES = [
    "jobs", "failed_jobs", "cache", "cache_locks", "queuepool_steps", "queuepool_flows", "queuepool_members",
    "queuepool_edges", "queuepool_joins", "queuepool_limits", "queuepool_rings", "queuepool_places", "queuepool_parked",
]  # fmt: skip


@job("testing.nightly", schedule="30 2 * * *")
def nightly() -> None: ...


class Minutely(Job, name="testing.minutely", schedule="90s"):
    def handle(self) -> None: ...


def test_the_next_times_of_a_job_are_those_of_its_schedule():
    night = datetime(2026, 3, 28, 12)

    assert [datetime(2026, 3, 29, 2, 30, tzinfo=UTC)] == next_times(nightly, after=night)
    assert ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"] == [
        due.isoformat() for due in next_times(nightly, 2, after=night, timezone="Europe/Berlin")
    ]  # 02:30 is skipped on that day


def test_a_class_has_next_times_too_which_begin_now():
    first, second = next_times(Minutely, 2)

    assert datetime.now(UTC) - timedelta(seconds=60) < first <= datetime.now(UTC) + timedelta(seconds=90)
    assert timedelta(seconds=90) == second - first


def test_a_moment_with_a_time_zone_is_taken_as_it_is():
    assert [datetime(2026, 6, 2, 2, 30, tzinfo=BERLIN)] == next_times(
        nightly, after=datetime(2026, 6, 1, 0, 30, tzinfo=UTC), timezone="Europe/Berlin"
    )


@each("wrong", [welcome, len, "testing.nightly", None])
def test_what_has_no_schedule_is_refused(wrong):
    with pytest.raises(ValueError, match="has no schedule"):
        next_times(wrong)


def test_an_unknown_time_zone_is_refused():
    with pytest.raises(ValueError, match="'Europe/Bonn' is not a time zone"):
        next_times(nightly, timezone="Europe/Bonn")


def test_tables_are_made_beside_those_of_the_application(tmp_path):
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as shop:
        shop.execute("CREATE TABLE orders (id INT)")

    assert TABLES == make_tables(f"sqlite:///{file}")
    assert [] == make_tables(f"sqlite:///{file}")
    with closing(connect(f"sqlite:///{file}")) as queue:
        assert queue.push("do")


def test_tables_are_made_where_a_configuration_says_and_none_in_redis(tmp_path, redis_url):
    (tmp_path / "pool.ini").write_text("[connection]\nurl = sqlite:///shop.db\n")

    assert TABLES == make_tables(tmp_path / "pool.ini")
    assert (tmp_path / "shop.db").exists()
    assert [] == make_tables(redis_url)


def test_a_table_that_cannot_be_used_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.execute("CREATE TABLE cache (id INT)")

    with pytest.raises(StoreDenied, match="the table cache has no column expiration: it is not Laravel's"):
        make_tables(f"sqlite:///{tmp_path}/shop.db")
