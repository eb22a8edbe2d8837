"""The search visits every state of the protocol: ours keeps each law; the known violations of others are kept.

The laws are in ``model/laws.py``, what each script does in ``model/scripts.py``, who may do what in
``model/protocol.py``. A variant that breaks a law must break it, by a trace of just this length: else the model has
lost its teeth, or what it was a model of has changed.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import pytest

from tests.model import following, handback, promotions, two_stores, wakeups
from tests.model.explore import Explored, explore
from tests.model.laws import LAWS
from tests.model.protocol import steps
from tests.model.rules import Rules


def searched(rules: Rules) -> Explored:
    return explore(rules.first(), partial(steps, rules), LAWS)


def lengths(found: Explored) -> dict[str, int]:
    return {law: len(trace) for law, trace in found.broken.items()}


#: requests that may be delivered after the socket was closed on which they were sent
WORKERS, STEWARDS = ("reserve", "reclaim", "release"), ("bury", "renew")

#: the largest searches: what they say together, others say one by one
LONG = {
    "longer leases, more deaths",
    "two answers are lost",
    "requests of the steward come late",
    "an answer is lost, and workers are stopped",
    "an answer is lost, and jobs have deadlines",
    "two jobs",
    "two queues",
    "requests of a worker come late",
    "requests of a worker come late, and it crashes",
    "requests of a worker come late, and it is stopped",
    "something follows, and two answers are lost",
    "something follows, and an end comes late",
}
LARGE = pytest.mark.thorough("each takes a second")
OURS = {
    "any worker may crash, be stopped, lose its lease": Rules(stops=1, delays=(0, 1)),
    "longer leases, more deaths": Rules(stops=1, delays=(0, 1), retry_after=3, most_attempts=3, crashes=2),
    "deadlines": Rules(stops=1, delays=(0, 1), timeout=1),
    "deadlines and no renewal": Rules(stops=1, timeout=1, renewed=False),
    "partition: no lease can be renewed": Rules(renewed=False),
    "an answer is lost": Rules(losses=1, crashes=0),
    "two answers are lost": Rules(losses=2, crashes=0),
    "an answer is lost, and workers are stopped": Rules(losses=1, stops=1, crashes=0),
    "an answer is lost, and jobs have deadlines": Rules(losses=1, timeout=1),
    "every step of a reserve takes its time": Rules(slow=True, crashes=0),
    "two jobs": Rules(jobs=2, most_attempts=1),
    "two queues": Rules(jobs=2, queues=(1, 0), crashes=0),
    "a job that kills its worker each time": Rules(crashes=3, max_crashes=2, most_attempts=4),
    "a job with one try, whose workers die or lose their hosts": Rules(
        tries=1, crashes=2, max_crashes=2, most_attempts=4, delays=(), renewed=False
    ),
    "an orphan whose job ends before its lease": Rules(masters=1, timeout=1, swift=True),
    "requests of a worker come late": Rules(late=WORKERS, losses=1, crashes=0),
    "requests of a worker come late, and it crashes": Rules(late=WORKERS, losses=1, most_attempts=1),
    "requests of a worker come late, and it is stopped": Rules(
        late=WORKERS, losses=1, crashes=0, stops=1, most_attempts=1
    ),
    "requests of the steward come late": Rules(late=STEWARDS, most_attempts=1),
    "something follows": Rules(follows=True, stops=1, delays=(0, 1)),
    "something follows, and two answers are lost": Rules(follows=True, losses=2, crashes=0),
    "something follows, and an end comes late": Rules(follows=True, late=("finish",), losses=1),
    "something follows, and the steward's requests come late": Rules(
        follows=True, late=("bury", "finish"), most_attempts=1
    ),
    "something follows a job that kills its worker each time": Rules(
        follows=True, crashes=3, max_crashes=2, most_attempts=4
    ),
}


@pytest.mark.by_turns("rules")
@pytest.mark.parametrize(
    "rules", [pytest.param(rules, id=name, marks=[LARGE] * (name in LONG)) for name, rules in OURS.items()]
)
def test_ours_keeps_every_law_whatever_happens_and_for_all_time(rules):
    found = searched(rules)

    assert {} == found.broken
    assert found.states > 300


# What we do, and what happens where we do not


WITHOUT = {
    "fences": (
        Rules(fenced=False, losses=1),
        {
            "a_job_is_stored_once": 5,
            "only_the_owner_settles": 4,
            "no_start_is_uncounted": 6,
            "attempts_are_starts": 6,
            "what_ended_is_stored_no_more": 8,
        },
    ),
    "the kill before a lease ends": (
        Rules(lease_kill=False),
        {"attempts_are_starts": 4, "no_two_run_a_job_at_once": 6, "what_finished_never_runs_again": 7},
    ),
    "counting a lease from before it was asked for": (
        Rules(slow=True, lease_from_hearing=True, crashes=0),
        {"attempts_are_starts": 6, "no_two_run_a_job_at_once": 10, "what_finished_never_runs_again": 11},
    ),
    "reclaiming what was not heard of": (Rules(losses=1, reclaims=False), {"attempts_are_starts": 4}),
    "telling the reclaim what is known": (
        Rules(losses=1, crashes=0, reclaims_knowing=False),
        {"what_finished_never_runs_again": 7},
    ),
    "the tag at a settlement": (Rules(losses=1, tagged=False), {"only_the_owner_settles": 5}),
    "the tag at a renewal": (
        Rules(late=("renew",), crashes=0, stops=1, tagged=False),
        {"only_the_owner_settles": 6},
    ),
    "another tag after a reclaim that was not answered": (
        Rules(late=("reclaim",), losses=1, crashes=0, retires=False),
        {
            "no_start_is_uncounted": 6,
            "attempts_are_starts": 6,
            "no_two_run_a_job_at_once": 8,
            "what_finished_never_runs_again": 9,
        },
    ),
    "refusing a reserve under a tag that was given up": (
        Rules(late=("reserve",), losses=1, crashes=0, retires=False),
        {"attempts_are_starts": 6},
    ),
    "forgiving the death of a worker": (Rules(tries=1, counts_deaths=True, delays=()), {"no_death_is_a_failure": 4}),
    "forgiving the loss of a host": (
        Rules(tries=1, counts_deaths=True, delays=(), crashes=0, renewed=False),
        {"no_death_is_a_failure": 7},
    ),
    "looking for the lease before an outcome is pushed": (
        Rules(follows=True, checked=False, losses=1),
        {"what_ended_has_one_outcome_and_nothing_else_has_any": 5},
    ),
    "ending a job in the step that pushes its outcome": (
        Rules(follows=True, together=False),
        {"what_ended_has_one_outcome_and_nothing_else_has_any": 4},
    ),
    "looking at the done receipts of the dead": (
        Rules(follows=True, looks=False),
        {"what_ended_has_one_outcome_and_nothing_else_has_any": 5},
    ),
    "a tag for each worker alone": (
        Rules(losses=1, crashes=0, unique=False),
        {
            "no_start_is_uncounted": 4,
            "attempts_are_starts": 4,
            "no_two_run_a_job_at_once": 6,
            "what_finished_never_runs_again": 7,
        },
    ),
}


@pytest.mark.parametrize("without", WITHOUT)
@pytest.mark.by_turns("without")
def test_nothing_that_keeps_the_laws_can_be_left_out(without):
    rules, broken = WITHOUT[without]

    assert broken == lengths(searched(rules))


# Laravel


LARAVEL = Rules(fenced=False, tagged=False, retires=False, steward=False, renewed=False, lease_kill=False)
#: the lease ends, somebody stages the job, and its first worker goes on
LATE = ("w0 reserves", "tick", "tick", "stage")


@pytest.mark.parametrize("timeout", [None, 2], ids=["the alarm waits for C code", "timeout = retry_after"])
def test_laravels_protocol_breaks_four_laws_in_five_steps(timeout):
    found = searched(_with(LARAVEL, timeout=timeout))

    assert {
        "a_job_is_stored_once": (*LATE, "w0 releases(0)"),
        "only_the_owner_settles": (*LATE, "w0 releases(0)"),
        "what_ended_is_stored_no_more": (*LATE, "w0 deletes"),
        "no_two_run_a_job_at_once": (*LATE, "w1 reserves"),
    } == found.broken


def test_laravels_protocol_holds_where_every_job_ends_before_its_lease():
    assert {} == searched(_with(LARAVEL, timeout=1)).broken


def test_a_fence_alone_does_not_keep_two_from_running():
    found = searched(_with(LARAVEL, fenced=True))

    assert {
        "what_ended_is_stored_no_more": (*LATE, "w0 deletes"),
        "no_two_run_a_job_at_once": (*LATE, "w1 reserves"),
    } == found.broken


def test_laravels_release_sent_again_after_a_lost_answer_makes_two_jobs_of_one():
    found = searched(_with(LARAVEL, timeout=1, losses=1, reclaims=False))

    assert (
        "w0 reserves",
        "w0 releases(0) unheard",
        "stage",
        "w0 repeats its release",
    ) == found.broken["a_job_is_stored_once"]


def test_a_pop_of_laravels_whose_answer_is_lost_costs_an_attempt():
    found = searched(_with(LARAVEL, timeout=1, losses=1, reclaims=False))

    assert ("w0 reserves, unheard", "tick", "tick", "stage") == found.broken["attempts_are_starts"]


# Where our promises end


LIMITS = {
    "the dead are buried when their leases have ended already": (
        Rules(prompt=False),
        {"attempts_are_starts": 5, "what_finished_never_runs_again": 8},
    ),
    "an orphan's job outlasts its lease and no new master renews it": (
        Rules(masters=1, swift=True),
        {"no_two_run_a_job_at_once": 7, "what_finished_never_runs_again": 8},
    ),
}


@pytest.mark.by_turns("limit")
@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_not_promised_is_known(limit):
    rules, broken = LIMITS[limit]

    assert broken == lengths(searched(rules))


# Wake-ups


def woken(counts: bool, leaving: int, *laws: wakeups.Law) -> Explored:
    return explore(wakeups.Sleepers(3, leaving), partial(wakeups.steps, counts), laws)


def test_nobody_sleeps_beside_a_ready_job_where_tokens_are_counted():
    found = woken(True, 0, wakeups.nobody_sleeps_beside_a_ready_job)

    assert {} == found.broken
    assert found.states > 50


def test_who_leaves_with_a_token_is_made_up_for_at_the_next_stage():
    assert {} == woken(True, 1, wakeups.the_next_stage_puts_it_right).broken
    assert {"nobody_sleeps_beside_a_ready_job": 3} == lengths(woken(True, 1, wakeups.nobody_sleeps_beside_a_ready_job))


def test_laravels_pop_takes_a_token_that_another_sleeper_needed():
    found = woken(False, 0, wakeups.nobody_sleeps_beside_a_ready_job)

    assert ("push", "push", "w0 is woken", "w0 reserves") == found.broken["nobody_sleeps_beside_a_ready_job"]


# What waits behind a stuck job


def with_a_steward(looks: bool) -> Explored:
    return explore(handback.World(), partial(handback.steps, handback.Rules(looks)), handback.LAWS)


def test_what_a_worker_begins_is_its_own_whatever_the_steward_takes_back():
    found = with_a_steward(looks=True)

    assert {} == found.broken
    assert found.states > 100


def test_a_worker_that_does_not_look_after_its_answer_begins_what_the_steward_is_about_to_take():
    assert {"what_is_begun_is_reserved_by_who_began_it": 13} == lengths(with_a_steward(looks=False))


# Two stores


def with_two_stores(**rules: bool) -> Explored:
    variant = two_stores.Rules(**rules)
    return explore(variant.first(), partial(two_stores.steps, variant), two_stores.LAWS)


def test_a_job_that_is_retried_and_fails_again_is_never_lost_between_two_stores():
    found = with_two_stores()

    assert {} == found.broken
    assert found.states > 100


def test_a_record_that_is_known_by_its_bytes_alone_loses_the_job_that_a_retry_has_pushed():
    steps = ("is retried", "is pushed", "reserves", "records", "ends the job", "its record is dropped")

    assert {"nothing_is_lost": steps} == with_two_stores(outbox=False, ids=False).broken
    assert {"nothing_is_lost": 6} == lengths(with_two_stores(ids=False))


# A replica that lags is promoted


def promoted(**rules: bool) -> Explored:
    variant = promotions.Rules(**rules)
    return explore(promotions.World(), partial(promotions.steps, variant), promotions.LAWS)


def test_nobody_takes_away_what_another_runs_though_a_promoted_server_knows_not_everybody():
    found = promoted()

    assert {} == found.broken
    assert found.states > 100


def test_a_counter_of_tags_repeats_itself_on_a_promoted_server():
    apart = ("w0 joins as 1", "is promoted", "w1 joins as 1", "w1 reserves", "w0 joins again as 2")

    assert {"nobody_gives_back_what_another_runs": apart} == promoted(by_lot=False).broken


@pytest.mark.thorough("test_a_counter_of_tags_repeats_itself_on_a_promoted_server")
def test_a_lot_that_falls_on_a_tag_that_was_lost_does_no_harm_to_who_reserves_only_where_he_joined():
    twice = {"no_tag_has_jobs_of_two": 5, "nobody_gives_back_what_another_runs": 5}

    assert twice == lengths(promoted(lucky=False, anew=False))
    assert {"nobody_gives_back_what_another_runs": 5} == lengths(promoted(lucky=False))


# The search


def test_a_search_finds_the_shortest_way_and_looks_no_further_behind_it():
    found = explore(0, lambda number: [("+1", number + 1), ("+2", number + 2)], [_is_below_five])

    assert {"_is_below_five": ("+1", "+2", "+2")} == found.broken
    assert 7 == found.states


def _is_below_five(number: int) -> bool:
    return number < 5


def _with(rules: Rules, **changes: object) -> Rules:
    return dataclasses.replace(rules, **changes)


# What is said of a tracked job


def said(**rules: bool) -> dict[str, int]:
    rule = following.Rules(**rules)
    return lengths(explore(following.World(), partial(following.steps, rule), following.LAWS))


def test_what_is_said_of_a_tracked_job_is_so():
    assert {} == said()


UNTRUE = {
    "fenced": {"what_is_over_is_said_to_be_over": 4},
    "together": {"what_is_over_is_said_to_be_over": 2, "what_was_said_to_run_and_does_is_said_to_run": 6},
    "said_first": {"what_is_over_is_said_to_be_over": 5, "what_was_said_to_run_and_does_is_said_to_run": 6},
}


@pytest.mark.parametrize("without", UNTRUE)
def test_nothing_that_makes_it_so_can_be_left_out(without):
    assert UNTRUE[without] == said(**{without: False})
