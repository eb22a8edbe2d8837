"""When schedules are due: cron expressions over the changes of clocks, intervals, and what never comes due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.config.timetable import NEVER, Cron, Every, cron, zone
from tests.support.each import each
from tests.support.effort import effort

BERLIN, NEW_YORK, LORD_HOWE = map(ZoneInfo, ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe"))
YEAR = 366 * 86400


def due(expression: str, place: ZoneInfo, since: str, until: str) -> list[str]:
    """The due times between two local times, as local times with their offsets."""
    table = Cron(expression, place)
    moment, end = (int(datetime.fromisoformat(text).replace(tzinfo=place).timestamp()) for text in (since, until))
    found = []
    while (moment := table.next_after(moment)) <= end:
        found.append(table.local(moment).strftime("%d %H:%M%z"))
    return found


@each(
    ("place", "since", "until", "expression", "times"),
    [
        # Berlin: 02:00 becomes 03:00 on 29 March 2026, and 03:00 becomes 02:00 on 25 October.
        (BERLIN, "2026-03-28T12:00", "2026-03-30T12:00", "30 2 * * *", ["29 03:00+0200", "30 02:30+0200"]),
        (BERLIN, "2026-03-28T12:00", "2026-03-30T01:00", "0,30 2 * * *", ["29 03:00+0200"]),
        (BERLIN, "2026-03-29T01:00", "2026-03-29T03:30", "30 * * * *", ["29 01:30+0100", "29 03:30+0200"]),
        (BERLIN, "2026-03-28T12:00", "2026-03-29T12:00", "*/30 2 * * *", []),
        (BERLIN, "2026-10-24T12:00", "2026-10-26T12:00", "30 2 * * *", ["25 02:30+0200", "26 02:30+0100"]),
        (BERLIN, "2026-10-25T02:00", "2026-10-25T03:00", "30 * * * *", ["25 02:30+0200", "25 02:30+0100"]),
        (BERLIN, "2026-10-25T00:00", "2026-10-25T12:00", "0 3 * * *", ["25 03:00+0100"]),
        # New York: 02:00 becomes 03:00 on 8 March 2026, and 02:00 becomes 01:00 on 1 November.
        (NEW_YORK, "2026-03-07T12:00", "2026-03-09T12:00", "15 2 * * *", ["08 03:00-0400", "09 02:15-0400"]),
        (NEW_YORK, "2026-10-31T12:00", "2026-11-02T12:00", "15 1 * * *", ["01 01:15-0400", "02 01:15-0500"]),
        # Lord Howe: 02:00 becomes 02:30 on 4 October 2026, and 02:00 becomes 01:30 on 5 April.
        (LORD_HOWE, "2026-10-03T12:00", "2026-10-05T12:00", "15 2 * * *", ["04 02:30+1100", "05 02:15+1100"]),
        (LORD_HOWE, "2026-10-03T12:00", "2026-10-05T12:00", "45 2 * * *", ["04 02:45+1100", "05 02:45+1100"]),
        (LORD_HOWE, "2026-04-04T12:00", "2026-04-06T12:00", "45 1 * * *", ["05 01:45+1100", "06 01:45+1030"]),
    ],
)  # fmt: skip
def test_fixed_times_run_once_where_clocks_change(place, since, until, expression, times):
    assert times == due(expression, place, since, until)


def test_in_the_second_pass_of_an_hour_the_first_pass_is_over():
    table = Cron("45 2 * * *", BERLIN)
    second_pass = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN).timestamp()
    first = int(datetime(2026, 10, 25, 2, 45, fold=0, tzinfo=BERLIN).timestamp())

    assert first == table.latest(second_pass - 86400, second_pass)
    assert "26 02:45+0100" == table.local(table.next_after(second_pass)).strftime("%d %H:%M%z")


EXPRESSIONS = (
    "30 2 * * *",
    "0,30 2 * * 0",
    "*/15 * * * *",
    "0 */6 * * *",
    "15 1-3 * * *",
    "0 3 1 * *",
    "* * * * *",
    "59 23 L * *",
)


@effort(300)
@given(
    expression=st.sampled_from(EXPRESSIONS),
    place=st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, UTC]),
    after=st.integers(1_767_225_600, 1_767_225_600 + YEAR),
    span=st.integers(0, 5 * 86400),
)
def test_the_latest_due_time_is_the_last_that_is_met_step_by_step(expression, place, after, span):
    table, last = Cron(expression, place), None
    moment = after
    while (moment := table.next_after(moment)) <= after + span and (last is None or moment > last):
        last = moment

    assert last == table.latest(after, after + span + 0.5)


@given(seconds=st.integers(1, 100_000), moment=st.floats(0, 2e9))
def test_intervals_are_on_the_grid_of_the_epoch(seconds, moment):
    table = Every(seconds)
    after = table.next_after(moment)

    assert 0 == after % seconds
    assert after - seconds <= moment < after
    assert after - seconds == table.latest(after - seconds - 1, moment)
    assert table.latest(moment, moment) is None
    assert table.local(after) == datetime.fromtimestamp(after, UTC)


def test_a_rare_time_is_found_and_a_time_that_never_comes_is_never_due():
    assert "2044-02-29" == Cron("0 0 * 2 MON#5").local(Cron("0 0 * 2 MON#5").next_after(1.7e9)).date().isoformat()
    assert NEVER == Cron("* * */20 * 1L").next_after(1.7e9)
    assert Cron("* * */20 * 1L").latest(0, 1.8e9) is None


@pytest.mark.bad_input("B127")
@each(
    ("raw", "words"),
    [
        ("0 0 30 2 *", "never comes due: no such day in these months"),
        ("0 0 31 4,6,9,11 *", "never comes due: no such day in these months"),
        ("* * */20 * 1L", "never comes due"),
        ("* * * *", "is not a cron expression of five fields like 0 3 * * *"),
        ("0 0 3 * * *", "is not a cron expression of five fields like 0 3 * * *"),
        ("@daily", "is not a cron expression of five fields like 0 3 * * *"),
        ("60 * * * *", "is not a cron expression: bad minute"),
        ("0 24 * * *", "is not a cron expression: bad hour"),
        ("0 0 32 * *", "is not a cron expression: bad day-of-month"),
        ("0 0 * 13 *", "is not a cron expression: bad month"),
        ("0 0 * * 8", "is not a cron expression: bad day-of-week"),
        ("5-1 * * * *", "is not a cron expression: bad minute"),
        ("*/0 * * * *", "is not a cron expression: bad minute"),
    ],
)
def test_an_expression_that_is_wrong_or_never_comes_due_is_refused_in_one_line(raw, words):
    with pytest.raises(ValueError) as refused:
        cron(raw)

    assert f"{raw!r} {words}" == str(refused.value)


@pytest.mark.bad_input("B128")
@each(
    ("name", "words"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("CEST", "is not a time zone like Europe/Berlin"),
        ("../../etc/passwd", "is not a time zone like Europe/Berlin"),
        ("/etc/localtime", "is not a time zone like Europe/Berlin"),
        ("Europe", "is not a time zone like Europe/Berlin"),
        ("", "is not a time zone like Europe/Berlin"),
    ],
)
def test_an_unknown_time_zone_is_refused(name, words):
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        zone(name)


def test_what_clock_changes_do_to_fixed_times_is_said():
    def said(expression: str, place: ZoneInfo) -> list[str]:
        since = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
        return [f"{local:%m-%d %H:%M} {words}" for local, words in Cron(expression, place).changes(since)]

    skipped, repeated = "runs instead of a time that is skipped", "comes twice and runs the first time"
    assert [f"03-29 03:00 {skipped}", f"10-25 02:30 {repeated}"] == said("30 2 * * *", BERLIN)
    assert [f"10-04 02:30 {skipped}"] == said("15 2 * * *", LORD_HOWE)
    assert [f"04-05 01:45 {repeated}"] == said("45 1 * * *", LORD_HOWE)
    assert [] == said("30 2 1 1 *", BERLIN) == said("0 3 * * *", BERLIN) == said("*/5 * * * *", BERLIN)
    assert [] == said("30 2 * * *", ZoneInfo("Asia/Tokyo"))


def test_a_clock_change_of_a_past_offset_of_seconds_is_no_trouble():
    early = datetime(1900, 1, 1, tzinfo=BERLIN) - timedelta(days=2000)

    assert early.timestamp() < Cron("30 2 * * *", BERLIN).next_after(early.timestamp())
