"""Verdicts on an attempt, and which option wins: rulings on plain facts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.errors import (
    CLOSURE,
    BadArguments,
    JobError,
    JobExpired,
    JobFailedByHand,
    NeedsLaravel,
    NoTriesLeft,
    TimedOut,
    TooManyAttempts,
    UnknownJob,
    WorkerDied,
)
from queuepool.jobs.job_options import Options
from queuepool.payload.lease import Tallies
from queuepool.payload.options import PayloadOptions
from queuepool.settlement.verdict import (
    Delete,
    Fail,
    Policy,
    Release,
    Retryable,
    Verdict,
    delay_after,
    judge,
    judge_release,
    judge_suspect,
    may_start,
    needs_tallies,
)
from queuepool.unix.exit_codes import MEMORY
from queuepool.worker.context import Limits, StopReason
from queuepool.worker.plan import cut, guard_of, policy_of, soft_timeout_of, timeout_of
from tests.support.each import each

NOW = 1_000.0
RAISED = ValueError("told to")
DIED = WorkerDied("signal 9")
NONE_YET = Tallies()


def terms(**wishes: object) -> PayloadOptions:
    return PayloadOptions(**{"job": "ok", "display_name": "ok", **wishes})  # type: ignore[arg-type]


# Before an attempt


@each(("attempts", "tries"), [(1, 1), (3, 3), (2, 3), (999, 0)])
def test_a_job_may_start_while_it_has_tries_left(attempts, tries):
    assert None is may_start("ok", attempts, Policy(tries=tries), NOW)


def test_a_job_that_was_started_as_often_as_it_may_be_fails():
    ruling = may_start("ok", 4, Policy(tries=3, counts_deaths=True), NOW)

    assert isinstance(ruling, Fail)
    assert isinstance(ruling.error, TooManyAttempts)
    assert "attempt 4 of 3" in str(ruling.error)


def test_an_attempt_beyond_the_tries_may_start_as_often_as_deaths_are_forgiven():
    policy = Policy(tries=1, max_crashes=3)

    assert [None, None] == [may_start("ok", attempts, policy, NOW) for attempts in (2, 3)]
    ruling = may_start("ok", 4, policy, NOW)
    assert isinstance(ruling, Fail)
    assert "(attempt 4 of 1, 3 of them lost with their workers or hosts)" in str(ruling.error)
    assert None is may_start("ok", 99, Policy(tries=1, max_crashes=0), NOW)
    assert may_start("ok", 2, Policy(tries=1, max_crashes=1), NOW)


def test_an_attempt_under_suspicion_is_none_of_those_deaths_where_the_tally_is_known():
    policy = Policy(tries=1, max_crashes=1)

    assert None is may_start("ok", 2, policy, NOW, suspicions=1)
    ruling = may_start("ok", 3, policy, NOW, suspicions=1)
    assert isinstance(ruling, Fail)
    assert "(attempt 3 of 1, 2 of them lost with their workers or hosts)" in str(ruling.error)
    assert may_start("ok", 2, policy, NOW)
    assert None is may_start("ok", 3, Policy(tries=1, max_crashes=3), NOW)


def test_a_job_may_start_until_the_second_that_it_is_to_be_tried_until():
    policy = Policy(retry_until=NOW)

    assert None is may_start("ok", 1, policy, NOW)
    assert isinstance(may_start("ok", 1, policy, NOW + 0.001), Fail)


def test_a_job_whose_time_is_over_fails_as_expired():
    ruling = may_start("ok", 1, Policy(retry_until=NOW - 1), NOW)

    assert isinstance(ruling, Fail)
    assert isinstance(ruling.error, JobExpired)


def test_a_job_with_a_time_limit_may_start_however_often():
    assert None is may_start("ok", 100, Policy(tries=1, retry_until=NOW + 1), NOW)


# After an attempt


def test_a_job_that_returned_is_done():
    assert Delete() == judge(None, 1, Policy(), NONE_YET, NOW)


def test_a_job_that_raised_with_tries_left_is_tried_again_after_its_backoff():
    assert Release(5.0) == judge(RAISED, 1, Policy(tries=2, backoff=(5.0,)), NONE_YET, NOW)


def test_a_job_that_raised_at_its_last_try_fails_with_what_it_raised():
    assert Fail(RAISED) == judge(RAISED, 2, Policy(tries=2), NONE_YET, NOW)


def test_a_job_without_a_limit_is_tried_again_and_again():
    assert Release(0.0) == judge(RAISED, 60_000, Policy(tries=0), NONE_YET, NOW)


def test_a_job_with_a_time_limit_is_tried_again_until_then_whatever_its_tries():
    policy = Policy(tries=1, retry_until=NOW)

    assert Release(0.0) == judge(RAISED, 9, policy, NONE_YET, NOW - 0.001)
    assert Fail(RAISED) == judge(RAISED, 9, policy, NONE_YET, NOW)


@each(
    "error",
    [
        UnknownJob("x"),
        BadArguments("x", "y"),
        TooManyAttempts("x", 2, 1),
        JobExpired("x"),
        JobFailedByHand("why"),
    ],
)
def test_a_job_that_must_not_be_tried_again_fails_with_all_its_tries_left(error):
    assert Fail(error) == judge(error, 1, Policy(tries=0), NONE_YET, NOW)


def unbegun(error: JobError) -> JobError:
    error.began = False
    return error


NEWER = [unbegun(UnknownJob("x")), unbegun(BadArguments("x", "y")), unbegun(UnknownJob("A", "handle()"))]


@each("error", NEWER)
def test_a_job_that_newer_code_may_know_is_tried_again_with_a_growing_delay_while_it_has_tries(error):
    policy = Policy(tries=4, backoff=(1.0,), counts_deaths=True)
    verdicts = [judge(error, attempts, policy, NONE_YET, NOW, unknown_retry=30.0) for attempts in (1, 2, 3, 4)]

    assert [Release(30.0), Release(60.0), Release(120.0), Fail(error)] == verdicts
    assert Fail(error) == judge(error, 1, Policy(tries=1), NONE_YET, NOW, unknown_retry=30.0)
    assert Fail(error) == judge(error, 1, policy, NONE_YET, NOW)
    assert Fail(error) == judge(error, 1, replace(policy, max_exceptions=1), NONE_YET, NOW, unknown_retry=30.0)


def test_that_delay_grows_to_an_hour_and_a_job_without_a_limit_is_tried_ten_times():
    error, forever, until = NEWER[0], Policy(tries=0), Policy(retry_until=NOW + 9)

    assert Release(3600.0) == judge(error, 9, forever, NONE_YET, NOW, unknown_retry=30.0)
    assert Release(7200.0) == judge(error, 9, forever, NONE_YET, NOW, unknown_retry=7200.0)
    assert Fail(error) == judge(error, 10, forever, NONE_YET, NOW, unknown_retry=30.0)
    assert Release(3600.0) == judge(error, 60_000, until, NONE_YET, NOW, unknown_retry=30.0)
    assert Fail(error) == judge(error, 1, until, NONE_YET, NOW + 9, unknown_retry=30.0)


@each(
    "error",
    [
        UnknownJob("x"),
        BadArguments("x", "y"),
        unbegun(UnknownJob(CLOSURE)),
        unbegun(UnknownJob("")),
        unbegun(TooManyAttempts("x", 2, 1)),
        unbegun(NeedsLaravel("x", ["has a chain"])),
    ],
)
def test_what_newer_code_would_not_know_either_and_what_a_handler_raised_fails_at_once(error):
    assert Fail(error) == judge(error, 1, Policy(tries=0), NONE_YET, NOW, unknown_retry=30.0)


@each(
    ("retryable", "excluded"),
    [
        (Retryable(), ()),
        (Retryable(retry_on=(OSError,)), (ValueError, SystemExit)),
        (Retryable(fail_on=(OSError,)), (OSError, TimeoutError)),
        (Retryable(retry_on=(OSError,), fail_on=(TimeoutError,)), (TimeoutError, ValueError, SystemExit)),
        (Retryable(retry_on=(Exception,)), (SystemExit,)),
    ],
)
def test_the_exceptions_that_a_job_names_say_whether_it_may_be_tried_again(retryable, excluded):
    raised = (OSError, TimeoutError, ValueError, SystemExit)

    assert excluded == tuple(error for error in raised if retryable.excludes(error()))


def test_after_an_exception_that_is_not_retried_no_try_is_left():
    policy = Policy(tries=0, retry_until=NOW + 1)

    assert Fail(RAISED) == judge(RAISED, 1, policy, NONE_YET, NOW, is_final=True)
    assert Delete() == judge(None, 1, policy, NONE_YET, NOW, is_final=True)


def test_the_exception_that_is_one_too_many_fails_the_job():
    policy = Policy(tries=0, max_exceptions=3)

    assert Release(0.0) == judge(RAISED, 9, policy, Tallies(exceptions=1), NOW)
    assert Fail(RAISED) == judge(RAISED, 9, policy, Tallies(exceptions=2), NOW)


def test_a_worker_that_died_uses_up_no_try():
    died, policy = WorkerDied("signal 9"), Policy(tries=2)

    assert Release(0.0) == judge(died, 2, policy, NONE_YET, NOW)
    assert Release(0.0) == judge(RAISED, 2, policy, Tallies(crashes=1), NOW)
    assert Fail(RAISED) == judge(RAISED, 3, policy, Tallies(crashes=1), NOW)


def test_an_attempt_under_suspicion_uses_up_no_try():
    policy = Policy(tries=2)

    assert Release(0.0) == judge(RAISED, 3, policy, Tallies(crashes=1, suspects=1), NOW)
    assert Fail(RAISED) == judge(RAISED, 4, policy, Tallies(crashes=1, suspects=1), NOW)
    assert Release(0.0) == judge(TimedOut("late"), 2, policy, Tallies(suspects=1), NOW)
    asked = Release(10.0)
    assert asked is judge_release(asked, "ok", 2, policy, Tallies(suspects=1), NOW)


def test_an_attempt_under_suspicion_is_no_death_that_its_job_caused():
    died = WorkerDied("signal 9")

    assert Release(0.0) == judge(died, 3, Policy(tries=1), Tallies(suspects=1), NOW)
    assert Fail(died) == judge(died, 4, Policy(tries=1), Tallies(suspects=1), NOW)
    assert Release(0.0) == judge(died, 9, Policy(tries=0), Tallies(crashes=1, suspects=7), NOW)


def test_a_job_has_its_tries_and_its_deaths_whenever_it_is_suspected():
    """Beside the same life without suspicion; each step is the error of an attempt, or none where it was suspected."""
    policy = Policy(tries=3, max_crashes=3)

    for life in product((RAISED, DIED, None), repeat=7):
        assert rulings(policy, tuple(filter(None, life))) == rulings(policy, life)


def rulings(policy: Policy, life: Iterable[Exception | None]) -> list[Verdict]:
    """On each attempt that did not end under suspicion, up to the last one."""
    tallies, found = Tallies(), list[Verdict]()
    for attempts, error in enumerate(life, 1):
        assert None is may_start("ok", attempts, policy, NOW, tallies.suspects)
        if error is None:
            tallies = replace(tallies, suspects=tallies.suspects + 1)
            continue
        known = tallies if error is DIED or needs_tallies(attempts, policy) else NONE_YET
        found.append(judge(error, attempts, policy, known, NOW))
        if found[-1] == Fail(error):
            break
        if error is DIED:
            tallies = replace(tallies, crashes=tallies.crashes + 1)
    return found


def test_a_timeout_uses_up_the_only_try_also_after_a_death():
    late = TimedOut("late")

    assert [Fail(late)] * 2 == [judge(late, 1 + crashes, Policy(), Tallies(crashes=crashes), NOW) for crashes in (0, 1)]


def test_where_laravel_says_how_often_a_worker_that_died_counts_as_a_try():
    died, policy = WorkerDied("signal 9"), Policy(tries=2, counts_deaths=True)

    assert Release(0.0) == judge(died, 1, policy, NONE_YET, NOW)
    assert Fail(died) == judge(died, 2, policy, NONE_YET, NOW)
    assert Fail(RAISED) == judge(RAISED, 2, policy, Tallies(crashes=1), NOW)


def test_a_suspect_is_tried_again_at_once_whatever_its_tries_its_deaths_and_its_backoff():
    policy = Policy(tries=1, max_crashes=1, backoff=(9.0,), fail_on_timeout=True, max_exceptions=1)

    assert [Release(0.0)] * 2 == [judge_suspect(error, 1, policy, NOW) for error in (DIED, TimedOut("late"))]
    assert Release(0.0) == judge_suspect(DIED, 99, policy, NOW)
    assert Release(0.0) == judge_suspect(DIED, 99, Policy(tries=0, counts_deaths=True), NOW)


@each(
    ("attempts", "policy"),
    [
        (2, Policy(tries=2, counts_deaths=True)),
        (3, Policy(tries=2, counts_deaths=True)),
        (1, Policy(tries=9, retry_until=NOW)),
    ],
)
def test_a_suspect_that_may_not_begin_again_fails_with_the_cause_of_the_death(attempts, policy):
    assert Fail(DIED) == judge_suspect(DIED, attempts, policy, NOW)
    assert may_start("ok", attempts + 1, policy, NOW + 0.001, suspicions=1)


def test_a_suspect_that_may_begin_again_is_not_failed_before_that():
    counting = Policy(tries=2, counts_deaths=True)
    timed = Policy(retry_until=NOW, tries=1, counts_deaths=True)

    assert [Release(0.0)] * 2 == [judge_suspect(DIED, 1, counting, NOW), judge_suspect(DIED, 5, timed, NOW - 0.001)]
    assert [None] * 2 == [may_start("ok", 2, counting, NOW), may_start("ok", 6, timed, NOW)]


def test_where_laravel_says_how_often_an_attempt_under_suspicion_counts_as_a_try():
    policy, suspected = Policy(tries=2, counts_deaths=True), Tallies(suspects=1)

    assert Fail(RAISED) == judge(RAISED, 2, policy, suspected, NOW)
    assert Fail(DIED) == judge(DIED, 2, policy, suspected, NOW)
    assert may_start("ok", 3, policy, NOW, suspicions=1)


def test_a_death_is_no_exception():
    assert Release(0.0) == judge(WorkerDied("signal 9"), 1, Policy(tries=0, max_exceptions=1), NONE_YET, NOW)


def test_attempts_that_were_lost_with_their_hosts_are_deaths_too():
    died = WorkerDied("signal 9")

    assert Release(0.0) == judge(died, 2, Policy(tries=1), NONE_YET, NOW)
    assert Fail(died) == judge(died, 3, Policy(tries=1), NONE_YET, NOW)


def test_what_became_of_earlier_attempts_is_asked_only_where_it_matters():
    asked = [
        needs_tallies(attempts, Policy(tries=tries)) for attempts, tries in [(1, 1), (2, 1), (1, 3), (2, 3), (9, 0)]
    ]

    assert [False] * 5 == asked
    assert needs_tallies(3, Policy(tries=3))
    assert not needs_tallies(3, Policy(tries=3, counts_deaths=True))
    assert needs_tallies(1, Policy(tries=3, max_exceptions=1))


def test_a_release_by_hand_that_leaves_no_try_fails_at_once():
    asked, name = Release(10.0), "app.mail"

    ruling = judge_release(asked, name, 1, Policy(tries=1), NONE_YET, NOW)
    assert isinstance(ruling, Fail)
    assert isinstance(ruling.error, NoTriesLeft)
    assert "app.mail was released by its handler with no tries left (attempt 1 of 1)" in str(ruling.error)
    for attempts, policy, tallies in [
        (1, Policy(tries=2), NONE_YET),
        (99, Policy(tries=0), NONE_YET),
        (3, Policy(tries=3), Tallies(crashes=1)),
        (1, Policy(tries=1, retry_until=NOW + 10), NONE_YET),
    ]:
        assert asked is judge_release(asked, name, attempts, policy, tallies, NOW)
    late = judge_release(asked, name, 1, Policy(retry_until=NOW + 9), NONE_YET, NOW)
    assert isinstance(late, Fail)
    assert isinstance(late.error, JobExpired)


def test_a_job_that_killed_too_many_workers_fails_whatever_its_tries():
    died = WorkerDied("signal 9")
    policy = Policy(tries=0, max_crashes=3)

    assert Release(0.0) == judge(died, 2, policy, Tallies(crashes=1), NOW)
    assert Fail(died) == judge(died, 3, policy, Tallies(crashes=2), NOW)


def test_exceptions_are_no_crashes():
    assert Release(0.0) == judge(RAISED, 9, Policy(tries=0, max_crashes=3), Tallies(crashes=9), NOW)


def test_crashes_without_a_limit_never_fail_a_job():
    died = WorkerDied("signal 9")

    assert Release(0.0) == judge(died, 9, Policy(tries=0, max_crashes=0), Tallies(crashes=9), NOW)


def test_a_job_that_ran_past_its_deadline_is_tried_again():
    assert Release(0.0) == judge(TimedOut("late"), 1, Policy(tries=2), NONE_YET, NOW)


def test_a_job_that_fails_on_timeout_does_so_at_the_first():
    late = TimedOut("late")

    assert Fail(late) == judge(late, 1, Policy(tries=0, fail_on_timeout=True), NONE_YET, NOW)


def test_a_job_that_fails_on_timeout_may_still_raise():
    assert Release(0.0) == judge(RAISED, 1, Policy(tries=0, fail_on_timeout=True), NONE_YET, NOW)


@each(("attempts", "delay"), [(1, 1.0), (2, 5.0), (3, 30.0), (4, 30.0), (60_000, 30.0), (0, 1.0)])
def test_the_nth_delay_follows_the_nth_attempt_and_the_last_one_goes_on(attempts, delay):
    assert delay == delay_after(attempts, (1.0, 5.0, 30.0))


def test_jitter_shortens_each_delay_by_chance_and_a_repeated_verdict_is_the_same():
    policy = Policy(tries=0, backoff=(10.0, 40.0), jitter=True)

    def rule(job: int, attempts: int = 1) -> Release:
        verdict = judge(RAISED, attempts, policy, NONE_YET, NOW, job_id=f"job {job}")
        assert isinstance(verdict, Release)
        return verdict

    delays = [rule(job).delay for job in range(1000)]
    assert (5.0, 10.0) == (round(min(delays), 1), round(max(delays), 1))
    assert 7.3 < sum(delays) / 1000 < 7.7
    assert rule(1) == rule(1) != rule(2)
    assert 20.0 <= rule(1, 2).delay <= 40.0
    assert Release(3.0) == judge(RAISED, 1, policy, NONE_YET, NOW, after=3.0, job_id="job 1")


@each(("payloads", "jitter"), [(None, True), ((1.0, 2.0), True), ((5.0,), False)])
def test_jitter_is_for_the_delays_of_the_handler(payloads, jitter):
    """Other delays in a payload are Laravel's or a person's."""
    assert jitter is policy_of(terms(backoff=payloads), Options(backoff=(1.0, 2.0), jitter=True), PoolSettings()).jitter


def test_no_backoff_is_no_delay():
    assert 0.0 == delay_after(3, ())


# Policies


def test_the_payloads_wish_counts_before_its_handlers_and_that_before_its_pools():
    pool, handlers = PoolSettings(tries=5), Options(tries=4)

    tries = [
        policy_of(terms(max_tries=3), handlers, pool).tries,
        policy_of(terms(), handlers, pool).tries,
        policy_of(terms(), Options(), pool).tries,
    ]

    assert [3, 4, 5] == tries


def test_a_wish_of_nought_is_a_wish():
    assert 0 == policy_of(terms(max_tries=0), Options(tries=4), PoolSettings(tries=5)).tries


@each(
    ("payloads", "handlers", "counts"),
    [(None, None, False), (None, 1, False), (3, 3, False), (3, None, True), (3, 1, True)],
)
def test_deaths_count_where_the_number_of_tries_is_not_the_handlers_own_or_the_pools(payloads, handlers, counts):
    assert counts is policy_of(terms(max_tries=payloads), Options(tries=handlers), PoolSettings()).counts_deaths


def test_every_wish_reaches_the_policy():
    wishes = terms(max_tries=2, max_exceptions=3, backoff=(1.0,), retry_until=NOW, fail_on_timeout=True, timeout=9.0)

    policy = policy_of(wishes, Options(), PoolSettings(max_crashes=7))

    assert (
        Policy(
            tries=2,
            max_exceptions=3,
            backoff=(1.0,),
            retry_until=NOW,
            fail_on_timeout=True,
            max_crashes=7,
            counts_deaths=True,
        )
        == policy
    )


def test_a_handler_that_fails_on_timeout_does_so_for_every_terms():
    assert policy_of(terms(), Options(fail_on_timeout=True), PoolSettings()).fail_on_timeout


@each(("wish", "handlers", "timeout"), [(3.0, 4.0, 3.0), (None, 4.0, 4.0), (None, None, 5.0), (0.0, 4.0, 0.0)])
def test_a_timeout_is_the_payloads_else_its_handlers_else_its_pools(wish, handlers, timeout):
    assert (timeout, "") == timeout_of(terms(timeout=wish), Options(timeout=handlers), PoolSettings(timeout=5.0))


@each(("asked", "timeout"), [(10.0, 10.0), (88.0, 88.0), (88.1, 88.0), (0.0, 88.0)])
def test_without_renewal_an_attempt_ends_before_its_lease(asked, timeout):
    pool = PoolSettings(connection=ConnectionSettings(renew=False, retry_after=90.0), grace=1.0, timeout=asked)

    own = timeout_of(terms(timeout=asked), Options(), pool)
    assert (timeout, asked != timeout) == (own[0], bool(own[1]))
    assert own == timeout_of(terms(), Options(timeout=asked), pool) == cut(asked, pool)
    # The pool's own is not the payload's oddity.
    assert (timeout, "") == timeout_of(terms(), Options(), pool)


def test_a_timeout_beyond_every_timer_is_one_of_ten_years():
    assert (315_360_000.0, "") == timeout_of(terms(timeout=9e10), Options(), PoolSettings())


@each(
    ("own", "pools", "timeout", "found", "warns"),
    [
        (None, 0.0, 60.0, 0.0, False),
        (None, 50.0, 60.0, 50.0, False),
        (40.0, 50.0, 60.0, 40.0, False),
        (0.0, 50.0, 60.0, 0.0, False),
        (None, 50.0, 50.0, 0.0, False),
        (50.0, 0.0, 50.0, 0.0, True),
        (50.0, 0.0, 0.0, 50.0, False),
    ],
)
def test_a_soft_timeout_is_its_handlers_else_its_pools_and_none_that_is_never_reached(
    own, pools, timeout, found, warns
):
    soft, warning = soft_timeout_of(Options(soft_timeout=own), PoolSettings(soft_timeout=pools), timeout)

    assert (found, warns) == (soft, bool(warning))


def test_a_job_that_has_neither_a_soft_timeout_nor_named_exceptions_is_called_without_a_guard():
    assert (None, "") == guard_of(Options(), PoolSettings(), 60.0)
    assert guard_of(Options(fail_on=(OSError,)), PoolSettings(), 60.0)[0]


def test_a_policy_survives_the_board():
    policy = Policy(tries=0, max_exceptions=2, backoff=(1.0, 2.5), jitter=True, retry_until=NOW, fail_on_timeout=True)

    assert policy == Policy.from_text(policy.to_text())


def test_a_policy_with_a_very_long_backoff_still_fits_the_board():
    text = Policy(backoff=(1.0,) * 10_000).to_text()

    assert len(text) < 2_000
    assert 1.0 == Policy.from_text(text).backoff[-1]
    assert json.loads(text)


def test_a_policy_with_long_numbers_still_fits_the_board():
    assert len(Policy(backoff=(0.1 + 0.2,) * 10_000).to_text()) <= 2_000


# Limits


def limits(**given: float) -> Limits:
    return Limits(**{"memory": 0.0, "max_jobs": 0, "until": 0.0, **given})  # type: ignore[arg-type]


def test_a_worker_without_limits_stays():
    assert None is limits().reached(jobs=10**6, rss=10**6, found_none=True, now=10**6)


@each(
    ("given", "reason"),
    [
        ({"memory": 100.0}, StopReason.MEMORY),
        ({"max_jobs": 5}, StopReason.MAX_JOBS),
        ({"until": 50.0}, StopReason.MAX_TIME),
        ({"once": True}, StopReason.ONCE),
        ({"stop_when_empty": True}, StopReason.EMPTY),
    ],
)
def test_a_worker_leaves_at_its_limit(given, reason):
    assert reason == limits(**given).reached(jobs=5, rss=100.0, found_none=True, now=50.0)
    assert None is limits(**given).reached(jobs=0, rss=99.9, found_none=False, now=49.9)


@each("given", [{"memory": 100.0}, {"until": 50.0}, {"max_jobs": 1}])
def test_a_worker_that_has_not_looked_for_a_job_yet_stays(given):
    assert None is limits(**given).reached(jobs=0, rss=200.0, found_none=False, now=60.0)


@each(("found_none", "idle", "reason"), [(True, 5.0, StopReason.EMPTY_FOR), (True, 4.9, None), (False, 5.0, None)])
def test_a_worker_leaves_when_it_has_had_no_job_for_long_enough(found_none, idle, reason):
    some = limits(stop_when_empty_for=5.0)

    assert reason == some.reached(jobs=1, rss=0.0, found_none=found_none, now=0.0, idle=idle)
    assert None is limits().reached(jobs=1, rss=0.0, found_none=True, now=0.0, idle=10**6)
    assert (2.0, 0.0) == (some.may_idle(3.0), some.may_idle(6.0))


def test_memory_is_the_first_of_several_reasons():
    reason = limits(memory=1.0, max_jobs=1, until=1.0, once=True).reached(jobs=5, rss=2.0, found_none=True, now=2.0)

    assert StopReason.MEMORY == reason


def test_only_memory_has_an_exit_code_of_its_own():
    assert {StopReason.MEMORY: MEMORY} == {reason: reason.code for reason in StopReason if reason.code}


def test_workers_that_begin_together_leave_apart_and_never_later_than_they_may():
    drawn = [Limits.drawn(memory=1.0, max_jobs=1_000, max_time=0.0).max_jobs for _ in range(50)]

    assert len(set(drawn)) > 1
    assert 900 <= min(drawn) <= max(drawn) <= 1_000


def test_a_limit_of_one_job_stays_one():
    assert {1} == {Limits.drawn(memory=1.0, max_jobs=1, max_time=0.0).max_jobs for _ in range(50)}
