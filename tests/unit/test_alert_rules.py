"""The rules of alerts, as functions of facts: which readings there are, when an alert is raised, and when cleared."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.alerts.rules import COUNTED, WINDOW, AlertReading, AlertStates, AlertWindow, LookFacts, Recent, readings
from queuepool.alerts.watch import AlertFacts, Lost, Own, lost_in
from queuepool.board.board import Board
from queuepool.board.counts import JobCounts, LimitFacts, PoolCounts, QueueFacts, counts_of
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.board.open_alerts import MAX_OF_ONE, OpenAlert
from queuepool.config.alerts import _LONGEST_SILENCE, AlertSettings
from queuepool.settlement.verdict import Fail
from queuepool.steward.measure import PoolMeters
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.worker.meter import Meter
from tests.support.each import each

LIMITS = AlertSettings()


def facts(**more: object) -> LookFacts:
    usual: dict[str, object] = {
        "pool": "p", "counts": PoolCounts(), "recent": Recent(), "running": {}, "away": {}, "silent": {},
    }  # fmt: skip
    return LookFacts(**{**usual, **more})  # type: ignore[arg-type]


def of_queue(**more: object) -> LookFacts:
    return facts(counts=PoolCounts(queues={"mail": QueueFacts(**more)}))  # type: ignore[arg-type]


def of_limit(**more: object) -> LookFacts:
    return facts(counts=PoolCounts(limits={"gpu": LimitFacts(**more)}))  # type: ignore[arg-type]


@each(
    ("given", "expected"),
    [
        (of_queue(oldest=75.0), AlertReading("wait", "mail", 75.0, 60.0)),
        (of_queue(overdue=31.0), AlertReading("overdue", "mail", 31.0, 30.0)),
        (of_queue(quarantined=2), AlertReading("quarantine", "mail", 2, 1)),
        (of_queue(oldest=75.0, paused=True), AlertReading("wait", "mail", 0.0, 60.0)),
        (of_queue(oldest=75.0)._replace(is_served=False), AlertReading("wait", "mail", 0.0, 60.0)),
        (facts(recent=Recent({"mail": (20, 5)})), AlertReading("failures", "mail", 0.25, 0.2)),
        (facts(running={"app.slow": 4000.0}), AlertReading("running", "app.slow", 4000.0, 3600.0)),
        (facts(counts=PoolCounts(failed_jobs=7)), AlertReading("failed", "failed jobs", 7, 1000)),
        (facts(recent=Recent({}, 6)), AlertReading("crashes", "p", 6, 5)),
        (facts(recent=Recent(flows=2)), AlertReading("failed_flows", "p", 2, 1)),
        (
            facts(stalled={"Hv": (30000.0, "album")}),
            AlertReading("stalled", "Hv", 30000.0, 21600.0, "its name is album"),
        ),
        (of_limit(oldest=4000.0, parked=7), AlertReading("parked", "gpu", 4000.0, 3600.0, "7 are parked")),
        (of_limit(unused=61.0), AlertReading("unused", "gpu", 61.0, 60.0)),
        (facts(silent={"web2:p": 31.0}), AlertReading("lost", "web2:p", 31.0, 30.0)),
        (facts(away={"store": 61.0}), AlertReading("store", "store", 61.0, 60.0)),
        (
            facts(running={"a\nb\x1b[2J" + "x" * 300: 1.0}),
            AlertReading("running", "a\\nb\\x1b[2J" + "x" * 189, 1.0, 3600.0),
        ),
    ],
)
def test_a_reading_is_a_fact_beside_its_limit(given, expected):
    assert expected in readings(given, LIMITS)


@pytest.mark.thorough("300 queues; the same facts are read of one in a test of all rules, and counted in test_meters")
def test_every_queue_of_a_pool_is_watched(tmp_path):
    """By what the steward measures and the workers count, of 300 queues and 1,000 names of jobs."""
    names = [f"tenant-{number:03}" for number in range(300)]
    board = Board.create(tmp_path / "board.1-1", 2)
    board.meters = MeterMemory.new(2, len(names))
    steward, worker = PoolMeters(board.meters, names), Meter(SlotMeters(board.meters, board.slots[0]))
    look = AlertFacts("p", board, counts_of)
    look.look(Lost({}, {}), {}, {})
    for number in range(300):
        steward.note(number, QueueFacts(oldest=75.0 if number == 299 else 0.0, measured_at=time.time()))
    for number in range(1000):
        worker.turn(names[number % 300], f"job{number}")
        worker.done(0.0)
    for number in range(300, 330):
        worker.turn("tenant-299", f"job{number}")
        worker.settles(Fail(ValueError()), is_ours=True)
        worker.settled(0.0)
    found, unknown = look.look(Lost({}, {}), {}, {})
    raised = {(one.kind, one.subject) for one in readings(found, LIMITS) if one.value >= one.limit}

    assert (frozenset(), {("wait", "tenant-299"), ("failures", "tenant-299")}) == (unknown, raised)


def test_few_attempts_have_no_rate_of_failures():
    assert [] == [one for one in readings(facts(recent=Recent({"mail": (19, 19)})), LIMITS) if one.kind == "failures"]


def test_what_waits_at_limits_is_no_alert_while_the_pool_is_paused():
    paused = of_limit(oldest=9e9, unused=9e9)._replace(is_served=False)

    assert [] == [one for one in readings(paused, LIMITS) if one.kind in ("parked", "unused")]


def test_a_limit_of_0_is_none():
    nothing = AlertSettings(
        wait=(("mail", 0.0),),
        overdue=0,
        failures=0,
        running=0,
        failed=0,
        quarantine=0,
        crashes=0,
        lost=0,
        store=0,
        failed_flows=0,
        stalled=0,
        parked=0,
        unused=0,
    )
    given = of_queue(oldest=1e9, overdue=1e9, quarantined=9)._replace(
        recent=Recent({"mail": (20, 20)}, 99, flows=9),
        running={"a": 1e9},
        away={"store": 1e9},
        silent={"b": 1e9},
        stalled={"Hv": (1e9, "album")},
    )

    assert [] == readings(given, nothing)


def test_a_queue_may_have_a_limit_of_its_own():
    limits = AlertSettings(wait=(("mail", 3600.0), ("", 60.0)))

    assert (3600.0, 60.0) == (limits.wait_of("mail"), limits.wait_of("default"))
    assert 0.0 == AlertSettings(wait=(("mail", 3600.0),)).wait_of("default")


# The last five minutes


def counted(ended: int, failed: int, crashes: int = 0) -> PoolCounts:
    jobs = {("mail", "a"): JobCounts(done=ended - failed, given_back=9), ("mail", "b"): JobCounts(failed=failed)}
    return PoolCounts(jobs=jobs, exits={"crash": crashes, "restart": 99, "timeout": 99})


def test_what_was_counted_before_the_first_look_does_not_count():
    window = AlertWindow()

    assert Recent({"mail": (0, 0)}, 0, False) == window.add(1.0, counted(100, 50, 7))
    assert Recent({"mail": (10, 3)}, 2, False) == window.add(11.0, counted(110, 53, 9))


def test_what_is_older_than_five_minutes_does_not_count():
    window = AlertWindow()
    window.add(0.0, counted(0, 0))
    window.add(10.0, counted(50, 50, 5))

    assert Recent({"mail": (10, 0)}, 0) == window.add(10.0 + WINDOW, counted(60, 50, 5))


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 9)), max_size=80))
def test_nothing_is_ever_below_0(looks):
    window = AlertWindow()
    for number, (done, failed, crashes) in enumerate(looks):
        recent = window.add(number * 10.0, counted(done + failed, failed, crashes))

        assert min([recent.deaths, *recent.attempts["mail"]]) >= 0


# Raised and cleared


def reading(value: float, limit: float = 60.0, kind: str = "wait", subject: str = "mail") -> AlertReading:
    return AlertReading(kind, subject, value, limit)


def looks(*values: float | None, states: AlertStates | None = None) -> str:
    """What each look changed: ``+`` raised, ``-`` cleared, ``.`` nothing; ``None``: nothing is known."""
    states, found = states or AlertStates(), ""
    for number, value in enumerate(values):
        given = [] if value is None else [reading(value)]
        changes = states.update(given, ("wait",) if value is None else (), 1000.0 + 10 * number)
        found += "+" * len(changes.raised) + "-" * len(changes.cleared) or "."
    return found


@each(
    ("values", "expected"),
    [
        ((60, 60), ".+"),
        ((59.9, 59.9), ".."),
        ((60, 0, 60, 0), "...."),
        ((60, 60, 60, 60), ".+.."),
        ((60, 60, 50, 60, 48, 60), ".+...."),
        ((60, 60, 47.9, 60, 60), ".+-.+"),
        ((60, None, 60), "..+"),
        ((60, 60, None, None, 60), ".+..."),
    ],
)
def test_it_takes_two_looks_to_raise_an_alert_and_four_fifths_to_clear_it(values, expected):
    assert expected == looks(*values)


@given(st.lists(st.sampled_from([0.0, 47.0, 50.0, 61.0, None]), max_size=60))
def test_an_alert_is_raised_and_cleared_in_turn(values):
    changes = looks(*values).replace(".", "")

    assert changes == ("+-" * len(values))[: len(changes)]


def test_what_has_no_reading_any_more_is_over():
    states = AlertStates([OpenAlert("running", "a", 70.0, 60.0, since=1.0)])

    [cleared] = states.update([], (), 1000.0).cleared
    assert ("running", "a", 0.0) == (cleared.kind, cleared.subject, cleared.value)
    assert [] == states.alerts


def test_what_an_earlier_steward_counted_is_not_over_before_this_one_has_counted_for_as_long():
    states = AlertStates([OpenAlert("crashes", "pool", 9.0, 5.0, since=1.0)])
    none = AlertReading("crashes", "pool", 0.0, 5.0)

    assert [] == states.update([none], (), 1000.0, COUNTED).cleared
    assert ["crashes"] == [one.kind for one in states.update([none], (), 1300.0).cleared]


def test_an_alert_knows_since_when_and_its_present_value():
    states = AlertStates()
    for now, value in ((1000.0, 60.0), (1010.0, 70.0), (1020.0, 80.0)):
        states.update([reading(value)], (), now)

    assert [OpenAlert("wait", "mail", 80.0, 60.0, since=1000.0)] == states.alerts


def test_a_hundred_alerts_are_raised_at_most_and_the_others_when_there_is_room():
    states = AlertStates()
    many = [reading(60.0, subject=f"q{number}") for number in range(MAX_OF_ONE + 5)]
    states.update(many, (), 1000.0)
    first, second = states.update(many, (), 1010.0), states.update(many[3:], (), 1020.0)

    assert (MAX_OF_ONE, 0, 5) == (len(first.raised), len(first.cleared), first.kept_back)
    assert (3, 3, 2) == (len(second.raised), len(second.cleared), second.kept_back)


def test_a_store_that_is_away_is_said_however_many_queues_there_is_trouble_with():
    states, store = AlertStates(), AlertReading("store", "store", 61.0, 60.0)
    many = [reading(60.0, subject=f"q{number}") for number in range(300)]
    for now in (1000.0, 1010.0):
        states.update(many, (), now)
    for now in (1020.0, 1030.0):
        changes = states.update([*many, store], (), now)

    assert (["store"], 200) == ([one.kind for one in changes.raised], changes.kept_back)


def test_of_too_many_alerts_the_worst_are_raised():
    states = AlertStates()
    many = [reading(60.0 + number, subject=f"q{number:03}") for number in range(300)]
    for now in (1000.0, 1010.0):
        states.update(many, (), now)

    assert [f"q{number:03}" for number in range(200, 300)] == [one.subject for one in states.alerts]


# Pools that are lost


def test_a_pool_is_silent_since_its_last_notice():
    notices = [
        {"host": "a", "pool": "p", "at": 1000},
        {"host": "b", "pool": "p", "at": 960},
        {"host": "b", "pool": "p", "at": 400},
    ]

    assert {"b:p": 40} == lost_in(notices, Own("a:p"), 30.0).silent
    assert {} == lost_in([], Own("a:p"), 30.0).silent


def test_the_notice_of_a_lost_pool_is_kept_for_longer_than_any_limit():
    assert NOTICE_KEPT >= 2 * _LONGEST_SILENCE
