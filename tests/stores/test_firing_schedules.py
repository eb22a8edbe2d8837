"""Due times of schedules over stewards that die, a store that is away and clocks that are set."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.config.settings import PoolSettings, ScheduleSettings
from queuepool.errors import ConfigError, StoreDenied, StoreDown, StoreError
from queuepool.events import ScheduleMissed, SchedulePushed
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending, Unlock
from queuepool.payload.unique_locks import said_in
from queuepool.pool.examine import refuse_unsendable
from queuepool.steward.schedule import ON_TIME, identity_of
from queuepool.stores.contract import Control
from queuepool.stores.due_log import KEPT_LINES, DueLog
from queuepool.stores.factory import Stores
from tests.support.drivers import connection_of, opened
from tests.support.effort import effort
from tests.support.stewards import Stewards, Wire

START = 1_764_000_000
_PREFIXES = count()


def schedule(connection, **more) -> ScheduleSettings:
    return ScheduleSettings(**{"name": "tick", "connection": connection, "every": 60, "job": "app.tick", **more})


def pool_of(*schedules: ScheduleSettings, **more) -> PoolSettings:
    return PoolSettings(connection=schedules[0].connection, schedules=schedules, **more)


@pytest.fixture
def stewards(stores):
    return Stewards(stores, pool_of(schedule(stores.settings)), START)


def told(stewards: Stewards) -> list[tuple]:
    """The events, in short: what was pushed, and the first and last time that was missed."""
    found = []
    for event in stewards.events:
        match event:
            case SchedulePushed():
                found.append(("pushed", event.due.timestamp() - START))
            case ScheduleMissed():
                found.append((event.reason, event.first.timestamp() - START, event.last.timestamp() - START))
    return found


# What one steward does


def test_a_schedule_begins_when_it_is_first_seen_and_is_pushed_at_each_due_time(stewards):
    assert 5.0 == stewards.run()
    stewards.now = START + 58.0
    assert 2.0 == stewards.run()
    assert [] == stewards.pushed()
    stewards.now = START + 60.25
    assert 5.0 == stewards.run()
    stewards.now = START + 120.0
    stewards.run()

    assert [START + 60, START + 120] == stewards.pushed()
    assert [("pushed", 60), ("pushed", 120)] == told(stewards)
    assert [0.25, 0.0] == [event.late for event in stewards.events]


def test_the_job_says_which_time_it_is_for_and_its_id_follows_from_that(stores):
    one = schedule(stores.settings, cron="0 3 * * *", every=0, timezone="Europe/Berlin", data='{"kind": "daily"}')
    stewards = Stewards(stores, pool_of(one), START)
    stewards.run()
    stewards.now = (due := datetime(2025, 11, 25, 2, tzinfo=UTC)).timestamp()
    stewards.run()
    payload = decode(stores.queue.first("default", 1)[0])

    assert "2025-11-25T03:00:00+01:00" == payload.fields["scheduledFor"]
    assert identity_of("tick", due) == payload.id == payload.uuid == stewards.events[0].id
    assert ("app.tick", {"kind": "daily"}) == (payload.name, payload.data)
    assert {} == payload.extra


def test_a_later_steward_goes_on_where_the_one_before_ended(stewards):
    stewards.run()
    stewards.now = START + 60.0
    stewards.run()
    for number in range(3):
        stewards.replace(number)
        stewards.run(number)

    assert [START + 60] == stewards.pushed()


@pytest.mark.fault("F79")
def test_of_missed_times_the_latest_is_made_good_and_the_others_are_told(stewards):
    stewards.run()
    stewards.now = START + 3630.0
    stewards.replace(0)
    stewards.run()

    assert [START + 3600] == stewards.pushed()
    assert [("late", 60, 3540), ("pushed", 3600)] == told(stewards)


@pytest.mark.parametrize(("late", "after"), [(100.0, 101.0), (0.0, ON_TIME + 1), (5.0, ON_TIME + 1)])
def test_a_time_that_is_older_than_late_is_not_made_good(stores, late, after):
    stewards = Stewards(stores, pool_of(schedule(stores.settings, late=late, every=600)), START)
    stewards.run()
    stewards.now = START + 600 + after
    stewards.run()
    assert [] == stewards.pushed()
    assert [("late", 600, 600)] == told(stewards)

    stewards.now = START + 1200.0
    stewards.run()
    assert [START + 1200] == stewards.pushed()


def test_without_late_a_time_is_met_that_is_some_seconds_old(stores):
    stewards = Stewards(stores, pool_of(schedule(stores.settings, late=0.0)), START)
    stewards.run()
    stewards.now = START + 60 + ON_TIME
    stewards.run()

    assert [START + 60] == stewards.pushed()


def test_a_changed_schedule_is_not_pushed_by_its_deploy(stores):
    old = Stewards(stores, pool_of(schedule(stores.settings)), START)
    old.run()
    new = Stewards(stores, pool_of(schedule(stores.settings, every=50)), START + 115)
    new.run()
    assert [] == new.pushed()

    new.now = START + 150.0
    new.run()
    assert [START + 150] == new.pushed()


@pytest.mark.parametrize("control", [Control(down=True), Control(schedules=frozenset({"tick"}))])
def test_what_is_paused_is_made_good_afterwards(stewards, control):
    stewards.run()
    stewards.control = control
    stewards.now = START + 60.0
    assert 1.0 == stewards.run()
    stewards.now = START + 90.0
    assert 1.0 == stewards.run()
    assert [] == stewards.pushed()

    stewards.control = Control(schedules=frozenset({"another"}))
    stewards.run()
    assert [START + 60] == stewards.pushed()


def test_a_pool_that_works_in_maintenance_pushes_in_maintenance(stores):
    stewards = Stewards(stores, pool_of(schedule(stores.settings), force=True), START)
    stewards.control = Control(down=True)
    stewards.run()
    stewards.now = START + 60.0
    stewards.run()

    assert [START + 60] == stewards.pushed()


def test_a_job_that_still_runs_keeps_the_next_one_away_until_it_is_over(stores):
    stewards = Stewards(stores, pool_of(schedule(stores.settings, overlap=False)), START)
    stewards.run()
    for turn in (1, 2):
        stewards.now = START + 60.0 * turn
        stewards.run()
    assert [START + 60] == stewards.pushed()
    assert [("pushed", 60), ("overlap", 120, 120)] == told(stewards)

    [lease] = stores.queue.reserve(["default"], stores.queue.join(), 1).leases
    lock = said_in(decode(lease.receipt).context)
    assert lock == Unlock("laravel_unique_job:app.tick:schedule:tick", lock.owner, "redis")
    stores.queue.finish(lease, Ending(unlocks=(lock,)))
    stewards.now = START + 180.0
    stewards.run()
    assert [START + 180] == stewards.pushed()


def test_marks_that_are_gone_let_schedules_begin_anew(stewards, stores):
    stewards.run()
    stores.values.forget("tick")
    stewards.now = START + 60.0
    stewards.run()
    assert [] == stewards.pushed()

    stewards.now = START + 120.0
    stewards.run()
    assert [START + 120] == stewards.pushed()


@pytest.mark.fault("F80")
def test_a_clock_that_is_set_back_pushes_nothing_twice(stewards):
    stewards.run()
    stewards.now = START + 600.0
    stewards.run()
    for second in (0, 60, 120, 599):
        stewards.now = START + float(second)
        stewards.run(second % 3)
        stewards.replace(second % 3)
    stewards.now = START + 660.0
    stewards.run()

    assert [START + 600, START + 660] == stewards.pushed()


@pytest.mark.parametrize("error", [StoreError("WRONGTYPE"), StoreDenied("NOPERM")])
def test_what_the_store_refuses_of_one_schedule_keeps_no_other_one_up(stores, error):
    class Refusing(Wire):
        def fire(self, due):
            if due.name == "tick":
                raise error
            return super().fire(due)

    several = pool_of(schedule(stores.settings), schedule(stores.settings, name="other"))
    stewards = Stewards(stores, several, START)
    stewards.run()
    stewards.wire = Refusing(stores)
    stewards.replace(0)
    stewards.now = START + 60.0
    with pytest.raises(type(error)):
        stewards.run()

    assert [START + 60] == stewards.pushed()


@pytest.mark.fault("F79")
def test_a_full_server_is_not_lost_and_gets_the_job_when_it_has_room(own_server, connection):
    stores = Stores(replace(connection, url=f"unix://{own_server.path}"))
    several = pool_of(schedule(stores.settings, overlap=False), schedule(stores.settings, name="old", late=0.0))
    stewards = Stewards(stores, several, START)
    own_server.say("CONFIG", "SET", "maxmemory", 1)
    stewards.run()
    stewards.now = START + 80.0
    with pytest.raises(StoreError, match="there is no room for the job of schedule tick") as refused:
        stewards.run()
    assert not isinstance(refused.value, StoreDown)
    assert [("late", 60, 60)] == told(stewards)

    own_server.say("CONFIG", "SET", "maxmemory", 0)
    stewards.run()
    assert [START + 60] == stewards.pushed()
    own_server.say("CONFIG", "SET", "maxmemory", 1)
    stewards.now = START + 120.0
    with pytest.raises(StoreError, match="of schedule old"):
        stewards.run()
    assert ("overlap", 120, 120) in told(stewards)
    stores.close()


@pytest.mark.bad_input("B129")
@pytest.mark.parametrize(
    "more", [{"data": '{"a": "\\ud800"}'}, {"job": "", "object": "App\\X", "data": '{"a": "\\ud800"}'}]
)
def test_data_that_no_payload_can_hold_is_refused_before_a_pool_starts(connection, more):
    with pytest.raises(ConfigError, match=r"\[schedule:tick\] data: "):
        refuse_unsendable([schedule(connection, **more)])


# Any order of events

STEPS = st.one_of(
    st.tuples(st.just("pass"), st.floats(0.0, 200.0)),
    st.tuples(st.just("pass"), st.sampled_from([0.001, 59.999, 60.0, 86400.0])),
    st.tuples(st.just("set back"), st.floats(0.0, 1000.0)),
    st.tuples(st.just("run"), st.integers(0, 2)),
    st.tuples(st.just("run"), st.integers(0, 2)),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("fault"), st.sampled_from(["", "", "request", "reply", "late"])),
    st.tuples(st.just("deliver"), st.just(0)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("change"), st.sampled_from([60, 90])),
)


@pytest.mark.by_turns("driver", "examples")
@pytest.mark.fault("F79", "F80", "F81")
@pytest.mark.parametrize(("driver", "examples"), [("redis", 250), ("sqlite", 40)])
def test_each_time_is_pushed_at_most_once_and_once_unless_older_than_late(request, driver, examples):
    connection = connection_of(driver, request)

    @effort(examples)
    @given(steps=st.lists(STEPS, max_size=60), late=st.sampled_from([0.0, 100.0, 3600.0]))
    def check(steps, late):
        queue = f"q{next(_PREFIXES)}"
        one = schedule(replace(connection, prefix=""), name=queue, late=late, queue=queue)
        stewards = Stewards(stores, pool_of(one), START)
        for step, value in steps:
            carry_out(stewards, step, value, late)
        stewards.wire.deliver()
        pushed = stewards.pushed(queue)
        assert sorted(set(pushed)) == pushed

    with opened(replace(connection, prefix="")) as stores:
        check()


def carry_out(stewards: Stewards, step: str, value, late: float) -> None:
    match step:
        case "pass":
            stewards.now += value
        case "set back":
            stewards.now -= value
        case "run":
            run(stewards, value, late)
        case "kill":
            stewards.replace(value)
        case "fault":
            stewards.wire.fault = value
        case "deliver":
            stewards.wire.deliver()
        case "pause":
            stewards.control = Control(down=value)
        case "change":  # a deploy: the others keep the old rule
            [one] = stewards.pool.schedules
            stewards.pool = pool_of(replace(one, every=value))
            stewards.replace(0)


def run(stewards: Stewards, number: int, late: float) -> None:
    """A round of a steward. If it was carried out, the latest due time is settled, and pushed unless it is too old."""
    job = stewards.job(number)
    name = job.settings.name
    before = stewards.stores.values.marks().get(name)
    answered = stewards.run(number) is not None
    after = stewards.stores.values.marks().get(name)
    if not answered or before is None or stewards.control.down or before.rule != job.rule or before.rule != after.rule:
        return
    due = job.timetable.latest(before.settled, stewards.now)
    if due is None:
        assert before == after
        return
    assert due == after.settled
    assert (stewards.now - due <= max(late, ON_TIME)) == (due == after.pushed) == (due in stewards.pushed(name))


# What is written down for people


def written(stewards: Stewards) -> list[tuple[int, int, str]]:
    """First and last due time of each line, and why they were missed, if they were."""
    lines = DueLog(stewards.stores.values).last("tick")
    return [(line.first - START, line.due - START, line.reason or "pushed") for line in lines]


def test_what_became_of_due_times_is_written_down_with_the_reason(stewards):
    stewards.run()
    stewards.now = START + 60.5
    stewards.run()
    stewards.control = Control(schedules=frozenset({"tick"}))
    stewards.now = START + 250.0
    stewards.run()
    stewards.control = Control()
    stewards.run()
    stewards.replace(0)
    stewards.now = START + 400.0
    stewards.run()

    assert [
        (60, 60, "pushed"),
        (120, 180, "paused"),
        (240, 240, "pushed"),
        (300, 300, "late"),
        (360, 360, "pushed"),
    ] == (written(stewards))
    [*_, last] = DueLog(stewards.stores.values).last("tick")
    assert (START + 400.0, identity_of("tick", datetime.fromtimestamp(START + 360, UTC))) == (last.at, last.id)


def test_a_time_that_its_last_job_has_taken_is_written_down(stores):
    stewards = Stewards(stores, pool_of(schedule(stores.settings, overlap=False)), START)
    for seconds in (0, 60, 120):
        stewards.now = START + seconds + 0.5
        stewards.run()

    assert [(60, 60, "pushed"), (120, 120, "overlap")] == written(stewards)


def test_only_the_last_lines_are_kept(stewards):
    for number in range(KEPT_LINES + 5):
        stewards.now = START + 60.0 * number
        stewards.run()

    assert list(range(5, KEPT_LINES + 5)) == [due // 60 for _, due, _ in written(stewards)]


def test_the_job_of_a_schedule_asks_that_its_outcome_be_kept_for_three_intervals(stores):
    for every, kept in ((1, 60), (600, 1800), (30 * 86400, 35 * 86400)):
        payload = decode(
            Stewards(stores, pool_of(schedule(stores.settings, every=every)), START).job(0).due(START, 0.0).payload
        )
        assert (None, kept) == (payload.options.track, payload.options.usual_track)
