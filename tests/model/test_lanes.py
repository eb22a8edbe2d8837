"""Many jobs at once in one worker: every interleaving keeps the promises; without one of the rules it breaks one.

``model/lanes.py`` has the board, the two clients and the steward, ``model/lane_leases.py`` the renewals, and
``model/lane_blame.py`` the loop, the alarm and the blame.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import pytest

from queuepool.steward.culprits import Cause, Charge, Culprits, Evidence, culprits_of
from tests.model import lane_blame, lane_leases, lanes
from tests.model.explore import Explored, explore

#: harmless in itself, but then what a request settles makes no room for what it brings
HOLD_FIRST = ("hold", "stage", "answered", "look")
MORE = pytest.mark.thorough("more of the same at once")


def searched(rules: lanes.Rules, until: str = "") -> Explored:
    return explore(rules.first(), partial(lanes.steps, rules), lanes.LAWS, until)


# The board, and two clients under one tag

OURS = [
    pytest.param(lanes.Rules(deaths=1), id="it dies between any two writes"),
    pytest.param(lanes.Rules(deaths=1, releases=1), id="it dies, and jobs are released", marks=MORE),
    pytest.param(lanes.Rules(losses=1, pauses=1), id="an answer is lost, or comes late"),
    pytest.param(lanes.Rules(losses=1, releases=1), id="an answer to a release is lost", marks=MORE),
    pytest.param(lanes.Rules(jobs=1, losses=1, deaths=1, pauses=1), id="it dies, and an answer is lost", marks=MORE),
    pytest.param(lanes.Rules(stalls=1), id="its loop stands still"),
    pytest.param(lanes.Rules(jobs=1, stalls=1, losses=1, deaths=1), id="it stands still, and dies", marks=MORE),
    pytest.param(lanes.Rules(jobs=1, stalls=1, losses=1, pauses=1), id="it stands still, and is paused", marks=MORE),
    pytest.param(lanes.Rules(deaths=1, stewards=1, releases=1), id="its steward dies, too", marks=MORE),
    pytest.param(lanes.Rules(losses=1, deaths=1), id="it dies, and answers of two jobs are lost", marks=MORE),
    pytest.param(lanes.Rules(losses=2), id="two answers are lost", marks=MORE),
    pytest.param(lanes.Rules(jobs=1, losses=2, pauses=1, releases=1), id="one job and all of it", marks=MORE),
    pytest.param(lanes.Rules(jobs=3, deaths=1), id="three jobs", marks=MORE),
    pytest.param(lanes.Rules(deaths=1, reuses=False, order=HOLD_FIRST), id="new lanes come first", marks=MORE),
]


@pytest.mark.by_turns("rules")
@pytest.mark.parametrize("rules", OURS)
def test_lanes_keep_every_law(rules):
    found = searched(rules)

    assert {} == found.broken
    assert found.states > 1000


WITHOUT = {
    "new lanes in place of what is not free yet": (
        lanes.Rules(jobs=3, order=HOLD_FIRST),
        "a_lane_is_free_before_it_is_used_again",
    ),
    "the end of the request before the new lanes": (
        lanes.Rules(jobs=1, deaths=1, order=("answered", "stage", "hold", "look")),
        "nothing_is_reserved_unknown_to_all",
    ),
    "a free lane before its job is deleted": (
        lanes.Rules(jobs=1, deaths=1, frees_when_answered=False),
        "attempts_are_starts",
    ),
    "a look at what the steward wants back": (
        lanes.Rules(jobs=1, stalls=1, looks=False),
        "what_a_lane_has_is_its_own",
    ),
    "a look before it says that it has moved on": (
        lanes.Rules(jobs=1, stalls=1, order=("stage", "hold", "look", "answered")),
        "what_a_lane_has_is_its_own",
    ),
    "one client counted": (
        lanes.Rules(jobs=1, losses=1, pauses=1, counts_both=False),
        "what_a_lane_has_is_its_own",
    ),
    "a new tag while a reserve is under way": (
        lanes.Rules(losses=1, renews="at once"),
        "what_a_lane_has_is_its_own",
    ),
    "a new tag before the reply is on the board": (
        lanes.Rules(losses=1, renews="heard"),
        "what_a_lane_has_is_its_own",
    ),
    "a give back beside a reserve": (
        lanes.Rules(jobs=1, losses=1, pauses=1, gives_back=""),
        "what_a_lane_has_is_its_own",
    ),
    "a give back beside a reserve that was given up": (
        lanes.Rules(jobs=1, losses=1, pauses=1, gives_back="answered"),
        "nothing_is_reserved_unknown_to_all",
    ),
    "no word whose attempt is counted": (
        lanes.Rules(deaths=1, notes_turn=False),
        "what_is_begun_is_counted_once",
    ),
    "a steward that counts its own first": (
        lanes.Rules(deaths=1, counts_first=False),
        "what_is_begun_is_counted_once",
    ),
}


@pytest.mark.parametrize("without", WITHOUT)
@pytest.mark.by_turns("without")
def test_without_one_of_its_rules_a_board_of_lanes_breaks_a_law(without):
    rules, law = WITHOUT[without]

    assert law in searched(rules, until=law).broken


# Renewals


def renewed(rules: lane_leases.Rules) -> Explored:
    return explore(lane_leases.World(), partial(lane_leases.steps, rules), lane_leases.LAWS)


def test_a_renewal_is_of_the_job_that_the_steward_has_seen():
    found = renewed(lane_leases.Rules())

    assert {} == found.broken
    assert found.states > 100


def test_a_renewal_by_lane_alone_ends_a_worker_for_the_job_before():
    rules = lane_leases.Rules(turns=False)

    assert {"nobody_is_killed_for_the_lease_of_another"} == set(renewed(rules).broken)


def test_a_renewal_that_is_counted_from_its_answer_ends_too_late():
    rules = lane_leases.Rules(from_before=False)

    assert {"who_runs_has_a_lease"} == set(renewed(rules).broken)


# Blame

ALL = (*lane_blame.CRASHES, *lane_blame.THREADS, *lane_blame.UNPROVEN)
DEADLINES = lane_blame.Rules(timed=True)
THREADED = lane_blame.Rules(timed=True, can=("holds the interpreter's lock", "crashes in its step"))
KILLERS = lane_blame.Rules(deaths=4, tries=2, can=(*lane_blame.CRASHES, *lane_blame.UNPROVEN))
SETTLERS = lane_blame.Rules(timed=True, stewards=1, can=("crashes in its step", "uses up the memory"))
HANGS = lane_blame.Rules(timed=True, hangs=1, deaths=0)


@cache  # two tests ask for what jobs do that kill their workers
def blamed(rules: lane_blame.Rules, most_deaths: int = 3, until: str = "") -> Explored:
    laws = [*lane_blame.LAWS, lane_blame.kills_are_few(most_deaths)]
    return explore(rules.first(), partial(lane_blame.steps, rules), laws, until)


JUST = [
    pytest.param(DEADLINES, id="jobs block the loop, and swallow what tells them to end"),
    pytest.param(THREADED, id="threads hold the interpreter's lock"),
    pytest.param(KILLERS, id="jobs kill their worker again and again"),
    pytest.param(lane_blame.Rules(deaths=2, kills=1, tries=2, can=ALL), id="every way to kill a worker", marks=MORE),
    pytest.param(SETTLERS, id="stewards that die while they settle", marks=MORE),
    pytest.param(HANGS, id="a worker whose main thread hangs, or fails"),
    pytest.param(lane_blame.Rules(jobs=3, deaths=3, can=lane_blame.UNPROVEN), id="three suspects", marks=MORE),
    pytest.param(DEADLINES._replace(deaths=2, can=("uses up the memory",)), id="alarms for suspects", marks=MORE),
    pytest.param(DEADLINES._replace(can=ALL), id="all of it", marks=MORE),
]


@pytest.mark.by_turns("rules")
@pytest.mark.parametrize("rules", JUST)
def test_blame_is_just(rules):
    found = blamed(rules)

    assert {} == found.broken
    assert found.states > 500


@pytest.mark.thorough("a bound; test_blame_is_just searches the same rules")
def test_a_job_that_kills_its_workers_has_one_death_more_than_max_crashes_and_not_two():
    assert 2 == KILLERS.max_crashes
    assert {} == blamed(KILLERS, most_deaths=3).broken
    assert {"who_kills_ends_failed"} == set(blamed(KILLERS, most_deaths=2).broken)


def of_all_that_are_past(evidence: Evidence) -> Culprits:
    """Whoever is past its deadline, whatever has the CPU."""
    if evidence.cause != Cause.DEADLINE:
        return culprits_of(evidence)
    late = {one.number: Charge.LATE for one in evidence.lanes if one.is_at_work and one.deadline <= evidence.at}
    return Culprits(late, (), evidence.at_work.keys() - late.keys())


def of_who_has_the_cpu(evidence: Evidence) -> Culprits:
    """Whoever has the CPU at the alarm, for however long; else all that are past their deadlines."""
    if evidence.cause != Cause.DEADLINE or evidence.on_cpu is None:
        return of_all_that_are_past(evidence)
    return Culprits({evidence.on_cpu: Charge.BLOCKED}, (), evidence.at_work.keys() - {evidence.on_cpu})


def of_nobody(evidence: Evidence) -> Culprits:
    return Culprits({}, evidence.at_work.keys())


def of_suspects_again_and_again(evidence: Evidence) -> Culprits:
    return culprits_of(replace(evidence, lanes=[replace(lane, is_suspect=False) for lane in evidence.lanes]))


def of_the_step_whatever_the_threads(evidence: Evidence) -> Culprits:
    return culprits_of(replace(evidence, lanes=[replace(lane, has_thread=False) for lane in evidence.lanes]))


def of_a_hang_as_of_a_kill(evidence: Evidence) -> Culprits:
    return culprits_of(replace(evidence, cause=Cause.KILLED) if evidence.cause == Cause.STALL else evidence)


def of_a_failure_as_of_an_exit(evidence: Evidence) -> Culprits:
    return culprits_of(replace(evidence, cause=Cause.FAULT) if evidence.cause == Cause.FAILURE else evidence)


INNOCENT, RECORD = "an_innocent_is_not_charged", "an_innocent_has_the_record_that_it_had"
UNJUST = {
    "an alarm that is left at an ended job's time": (DEADLINES._replace(rearms=False), "an_alarm_ends_who_is_late"),
    "a step whose begin is noted late": (DEADLINES._replace(since_first=False), INNOCENT),
    "a step that ends unseen": (KILLERS._replace(resets=False), INNOCENT),
    "blame for all that are past their deadlines": (DEADLINES._replace(culprits=of_all_that_are_past), INNOCENT),
    "blame for a step that has just begun": (DEADLINES._replace(culprits=of_who_has_the_cpu), INNOCENT),
    "the time while the loop was blocked": (DEADLINES._replace(counts_free=False), INNOCENT),
    "blame for a step beside a thread": (THREADED._replace(culprits=of_the_step_whatever_the_threads), INNOCENT),
    "a watch that goes on without the lock": (THREADED._replace(needs_lock=False), INNOCENT),
    "no charge where there is proof": (KILLERS._replace(culprits=of_nobody), "who_is_caught_is_charged"),
    "suspects that are not charged": (
        KILLERS._replace(culprits=of_suspects_again_and_again),
        "a_job_is_suspected_once",
    ),
    "suspicions that use up tries": (KILLERS._replace(forgives=False), "a_job_has_all_its_tries"),
    "suspicions that count as deaths": (
        KILLERS._replace(forgives=False),
        "a_job_fails_of_deaths_with_which_it_was_charged",
    ),
    "a steward that rules anew on what the one before it has left": (SETTLERS._replace(keeps_rulings=False), RECORD),
    "suspects where a worker hung by itself": (HANGS._replace(culprits=of_a_hang_as_of_a_kill), RECORD),
    "blame for a step beside which the main thread failed": (
        HANGS._replace(culprits=of_a_failure_as_of_an_exit),
        INNOCENT,
    ),
    "two suspects side by side": (KILLERS._replace(alone=False), "one_suspect_runs_at_a_time"),
}


@pytest.mark.parametrize("planted", UNJUST)
@pytest.mark.by_turns("planted")
def test_blame_is_unjust_where_one_of_its_rules_is_left_out(planted):
    rules, law = UNJUST[planted]

    assert law in blamed(rules, until=law).broken
