"""The health of a pool from plain facts: notices of other versions, and of other programs."""

from __future__ import annotations

from typing import Any

import pytest

from queuepool.board.health import NOT_RUNNING, Health, health_of_none, lived_state
from queuepool.board.health import health_of as health_of_overview
from queuepool.board.overview import PoolOverview
from queuepool.board.record import DAMAGED
from queuepool.board.states import State
from queuepool.operating.notices import PublishedPool
from tests.support.each import each


def notice(**facts: Any) -> dict[str, Any]:
    """As the first version published it, with two workers."""
    processes = [{"role": "worker", "state": "idle"}, {"role": "worker", "state": "busy"}]
    usual = {"state": "running", "master": 1, "workers": 2, "boot_problem": None, "maintenance": False, "paused": []}
    return {**usual, "store_lost": None, "processes": processes, **facts}


def health_of(facts: dict[str, Any]) -> Health:
    return health_of_overview(PoolOverview.from_json(facts))


def test_a_notice_of_an_older_version_is_understood():
    health = health_of(notice())

    assert ("running", True, True, ()) == (health.state, health.takes_jobs, health.is_well, health.troubles)


@each(
    ("workers", "state", "kind"),
    [
        ([], "failing", "boot"),
        (["dead", "dead"], "failing", "boot"),
        (["starting", "dead"], "starting", "starting"),
        (["draining", "stopping"], "running", "no_worker"),
    ],
)
def test_what_lives_is_believed_before_the_word(workers, state, kind):
    health = health_of(notice(processes=[{"role": "worker", "state": word} for word in workers]))

    assert (state, False, kind) == (health.state, health.takes_jobs, health.troubles[0].kind)


def test_a_template_that_imports_will_fork_workers():
    health = health_of(notice(processes=[{"role": "template", "state": "starting"}]))

    assert "starting" == health.state


def test_what_is_paused_and_has_another_trouble_does_not_only_rest():
    paused = health_of(notice(state="paused"))
    lost = health_of(notice(state="paused", store_lost="2020-01-01T00:00:00Z"))

    assert [(True, True), (False, False)] == [(one.rests, one.is_well) for one in (paused, lost)]


def test_a_line_names_twenty_paused_queues():
    pool = PoolOverview.from_json(notice(paused=[f"tenant-{number}" for number in range(300)]))

    assert pool.paused_words.endswith("tenant-19, and 280 more")


def test_paused_queues_are_named_once():
    workers = [{"role": "worker", "state": "paused"}]
    by_queue, by_signal = notice(paused=["mail"], processes=workers), notice(state="paused", paused=["mail"])

    assert ["paused"] == [one.kind for one in health_of(by_queue).troubles]
    assert ["paused", "paused_queues"] == [one.kind for one in health_of(by_signal).troubles]


def test_a_pool_that_is_not_there_takes_no_jobs():
    health = health_of_none()

    assert (NOT_RUNNING, False, False) == (health.state, health.takes_jobs, health.is_well)


@pytest.mark.bad_input("B168")
@each(
    "facts",
    [
        {},
        {"state": "running"},
        notice(processes=None),
        notice(processes=[3]),
        notice(processes=[{}]),
        notice(state=[]),
        notice(workers="many"),
        notice(store_lost="yesterday"),
        notice(paused=7),
        notice(beat_age="old"),
        notice(beat_age=10**400),
    ],
)
def test_facts_that_no_pool_has_written_are_refused_and_handed_on(facts):
    published = PublishedPool.of(facts, 0.0)

    with pytest.raises(DAMAGED):
        PoolOverview.from_json(facts)
    assert published.health is None
    assert {**facts, "notice_age": 0.0} == published.to_json()


@each(
    ("state", "wanted", "workers", "cannot_boot", "expected"),
    [
        (State.RUNNING, 1, [State.IDLE], True, State.RUNNING),
        (State.RUNNING, 1, [State.STARTING], False, State.STARTING),
        (State.RUNNING, 1, [State.STARTING], True, State.FAILING),
        (State.RUNNING, 1, [], False, State.STARTING),
        (State.RUNNING, 1, [], True, State.FAILING),
        (State.RUNNING, 0, [], True, State.RUNNING),
        (State.PAUSED, 1, [State.STARTING], False, State.PAUSED),
        (State.PAUSED, 1, [], True, State.FAILING),
        (State.DRAINING, 1, [], True, State.DRAINING),
        (State.STARTING, 1, [], True, State.STARTING),
    ],
)
def test_a_pool_runs_only_with_a_worker_that_has_come_to_work(state, wanted, workers, cannot_boot, expected):
    assert expected is lived_state(state, wanted, workers, cannot_boot=cannot_boot)
