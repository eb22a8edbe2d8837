"""The checker rules correctly on histories of jobs that run side by side, written by hand."""

from __future__ import annotations

from tests.chaos.lane_modes import PROVEN, UNPROVEN
from tests.chaos.test_checker_on_written_histories import END, RUN, calm, finish, kill, pushed, rule, said, start
from tests.support.each import each

_NANOSECONDS = 1_000_000_000
#: after every event of these histories
_LATER = 10**12
CULPRIT, NEIGHBOUR = "l.0", "l.1"
BOTH = pushed(2, "l", queue="wide")


def worker(pid=10, lanes=2):
    return ("worker", {"pid": pid, "master": 1, "lanes": lanes})


def one_by_one(pid=10):
    """A worker that runs one job at a time."""
    return ("worker", {"pid": pid, "master": 1})


def death(pid=10):
    return ("death", {"pid": pid})


def begins(job=NEIGHBOUR, attempt=1, pid=10, mode="lane_nap", until=_LATER):
    return start(job, attempt, pid, m=mode, until=until)


def ends(job=NEIGHBOUR, attempt=1, pid=10):
    return finish(job, attempt, pid)


def violated(*events, step=1_000_000):
    """The rules that this chapter is about."""
    of_lanes = ("I28", "I29", "I30", "I31", "I32")
    return sorted(name for name in rule(*events, END, step=step).violations if name.startswith(of_lanes))


def interrupted(mode="segv_in_await"):
    """Both run, and the first ends their worker."""
    dies = [said("die", CULPRIT)] if mode.endswith("in_await") else []
    return [*BOTH, worker(), begins(CULPRIT, mode=mode), begins(), *dies, death()]


AGAIN = [worker(11), begins(CULPRIT, 2, 11), ends(CULPRIT, 2, 11)]


@each("mode", sorted(PROVEN))
def test_a_neighbour_of_the_culprit_is_given_back_as_if_it_had_not_begun(mode):
    same = [begins(pid=11), ends(pid=11)]
    counted = [begins(attempt=2, pid=11), ends(attempt=2, pid=11)]

    assert [] == violated(*interrupted(mode), said("requeue", NEIGHBOUR, pid=1), *AGAIN, *same)
    assert ["I28 a neighbour was charged"] == violated(*interrupted(mode), *AGAIN, *counted)
    released = said("release", NEIGHBOUR, pid=1)
    assert ["I28 a neighbour was charged"] == violated(*interrupted(mode), released, *AGAIN, *counted)


@each("mode", sorted(UNPROVEN))
def test_a_neighbour_of_whom_nothing_proves_may_have_been_the_cause(mode):
    counted = [said("release", NEIGHBOUR, pid=1), begins(attempt=2, pid=11), ends(attempt=2, pid=11)]

    assert [] == violated(*interrupted(mode), *AGAIN, *counted)


def test_in_a_worker_that_runs_one_job_at_a_time_nobody_is_a_neighbour():
    assert [] == violated(*BOTH, one_by_one(), begins(), death(), begins(attempt=2, pid=11), ends(attempt=2, pid=11))


def test_what_becomes_of_a_neighbour_later_is_not_this_deaths_doing():
    later = [said("requeue", NEIGHBOUR, pid=1), kill(11), said("release", NEIGHBOUR, pid=1), begins(attempt=2, pid=12)]

    assert [] == violated(*interrupted(), *later, ends(attempt=2, pid=12))


def test_an_earlier_attempt_may_be_told_of_late():
    late = [said("release", NEIGHBOUR, attempt=1, pid=1), death(), said("requeue", NEIGHBOUR, attempt=2, pid=1)]
    events = [*BOTH, worker(), begins(CULPRIT, mode="segv_in_await"), begins(attempt=2), said("die", CULPRIT), *late]

    assert [] == violated(*events, begins(attempt=2, pid=11), ends(attempt=2, pid=11))


def test_who_is_killed_from_outside_has_neighbours_of_whom_each_may_have_been_the_cause():
    charged = [said("release", NEIGHBOUR, pid=1), begins(attempt=2, pid=11), ends(attempt=2, pid=11)]

    assert [] == violated(*BOTH, worker(), kill(), begins(), death(), *charged)


def test_a_worker_does_not_die_without_a_culprit():
    assert ["I28 interrupted by nobody"] == violated(*BOTH, worker(), begins(), death(), said("requeue", NEIGHBOUR))
    assert [] == violated(*BOTH, worker(), begins(), ends(), death())


def test_a_nemesis_that_harms_more_than_workers_excuses_both():
    away = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]
    events = [*BOTH, worker(), begins(), *away, death(), begins(attempt=2, pid=11), ends(attempt=2, pid=11)]

    assert [] == violated(*events)


def test_a_job_past_its_deadline_ends_within_the_grace_and_a_margin():
    def history(until):
        return [worker(), *BOTH, begins(mode="swallow_cancel", until=until), calm(1), calm(0), death()]

    second = _NANOSECONDS
    assert [] == violated(*history(5 * second), step=second)  # it begins at 5 s, and its worker dies at 8 s
    assert ["I29 past its deadline"] == violated(*history(4 * second), step=second)


def test_a_worker_that_runs_one_job_at_a_time_has_the_same_deadlines():
    history = [one_by_one(), *BOTH, begins(mode="overstay", until=4 * _NANOSECONDS), calm(1), calm(0), death()]

    assert ["I29 past its deadline"] == violated(*history, step=_NANOSECONDS)
    assert ["I30 too many at once"] == violated(one_by_one(), *BOTH, begins(CULPRIT), begins())


def test_a_worker_runs_no_more_at_once_than_it_may_and_each_job_once():
    three = pushed(3, "l", queue="wide")

    assert [] == violated(*three, worker(), begins("l.0"), begins(), ends(), begins("l.2"), ends("l.2"), ends("l.0"))
    assert ["I30 too many at once"] == violated(*three, worker(), begins("l.0"), begins(), begins("l.2"))
    assert ["I30 too many at once"] == violated(*three, worker(), begins(), begins())


def test_a_worker_with_a_free_lane_takes_a_job_that_waits():
    second, waits = _NANOSECONDS, [("pace", {"times": 1.0})] * 8
    one = pushed(1, "l", queue="wide")
    idle = ["I32 a free lane beside waiting jobs"]

    assert idle == violated(worker(), *one, *waits, begins("l.0"), ends("l.0"), step=second)
    assert [] == violated(worker(), *one, begins("l.0"), ends("l.0"), *waits, step=second)
    late = [("death", {"pid": 10}), *waits, worker(11), begins("l.0", pid=11), ends("l.0", pid=11)]
    assert [] == violated(worker(), *one, *late, step=second)
    elsewhere = [one_by_one(11), begins("l.0", pid=11), *waits, ends("l.0", pid=11)]
    assert [] == violated(worker(), *one, *elsewhere, step=second)
    both = [begins("l.8"), begins("l.9"), *one, *waits, ends("l.8"), begins("l.0"), ends("l.0"), ends("l.9")]
    assert [] == violated(worker(), *pushed(2, "l", 8, "wide"), *both, step=second)


def test_what_was_done_in_a_thread_may_run_again_if_another_job_ends_the_worker_before_the_loop_knows():
    one, passes = pushed(1, "l", 1, "wide"), [("pace", {"times": 1.0})] * 4
    done = [begins(mode="nap_in_thread"), ends(), *passes, death()]
    again = [begins(attempt=2, pid=11, mode="nap_in_thread"), ends(attempt=2, pid=11)]
    run = (RUN[0], {**RUN[1], "lanes": 2})

    assert {} == rule(run, *one, worker(), *done, *again, END, step=_NANOSECONDS).violations
    on_the_loop = [begins(), *done[1:]]
    findings = rule(run, *one, worker(), *on_the_loop, begins(attempt=2, pid=11), END, step=_NANOSECONDS)
    assert "I5 done twice, unexplained" in findings.violations


def test_so_may_any_plain_function_of_as_many_as_there_are_lanes():
    def twice(count, born):
        jobs = [f"t.{number}" for number in range(count)]
        first = [event for job in jobs for event in (start(job), finish(job))]
        again = [event for job in jobs for event in (start(job, 2, 11), finish(job, 2, 11))]
        calms = [calm(1), calm(0)] * 150  # longer than a worker takes to settle what it has done
        run = (RUN[0], {**RUN[1], "lanes": 2, "wide": 1})
        return rule(run, *pushed(count, "t", queue="default"), born, *first, *calms, death(), *again, END).violations

    assert {} == twice(2, worker())
    assert ["I5 done twice, unexplained"] == list(twice(3, worker()))
    assert ["I5 done twice, unexplained"] == list(twice(1, one_by_one()))


def test_what_was_done_in_a_thread_runs_again_if_its_time_was_over():
    """Nothing ends a thread at its deadline, and its last line is not its end."""

    def twice(until, why="TimedOut"):
        done = [*pushed(1, "t"), worker(), begins("t.0", mode="nap_in_thread", until=until), ends("t.0")]
        released, calms = said("release", "t.0", e=why), [calm(1), calm(0)] * 150
        again = [begins("t.0", 2, mode="nap_in_thread"), ends("t.0", 2)]
        return "I5 done twice, unexplained" in rule(*done, released, *calms, *again, END).violations

    assert not twice(until=0)
    assert twice(until=0, why="ValueError")
    assert twice(until=_LATER)


def killed(pid, attempt, *jobs, born=worker, signal=9, fails=False, mode="lane_rest"):
    """They run in this worker, which is killed."""
    about = {"a": attempt, "pid": 1, "e": "WorkerDied"}
    ends_it = ("kill", {"pid": pid, "why": "worker", "sig": signal})
    settled = [("fail" if fails else "release", {"id": job, **about}) for job in jobs]
    return [born(pid), *(begins(job, attempt, pid, mode) for job in jobs), ends_it, death(pid), *settled]


def side_by_side(pid=12, attempt=3, mode="lane_rest"):
    both = CULPRIT, NEIGHBOUR
    return [worker(pid), *(begins(job, attempt, pid, mode) for job in both), *(ends(job, attempt, pid) for job in both)]


TWICE = [*BOTH, *killed(10, 1, CULPRIT, NEIGHBOUR), *killed(11, 2, CULPRIT, NEIGHBOUR)]
BESIDE = ["I31 a suspect beside a suspect"]


def test_from_the_second_suspicion_on_a_job_runs_beside_no_other_suspect_of_its_worker():
    one = [begins(CULPRIT, 3, 12), ends(CULPRIT, 3, 12)]
    other = [begins(NEIGHBOUR, 3, 12), ends(NEIGHBOUR, 3, 12)]

    assert BESIDE == violated(*TWICE, *side_by_side())
    assert [] == violated(*TWICE, worker(12), *one, *other)
    in_two = [worker(13), begins(CULPRIT, 3, 13), worker(12), *other, ends(CULPRIT, 3, 13)]
    assert [] == violated(*TWICE, *in_two)
    innocent = pushed(1, "l", 2, "wide")
    assert [] == violated(*TWICE, *innocent, worker(12), begins("l.2", 1, 12), *one, *other, ends("l.2", 1, 12))


def test_one_suspicion_may_be_by_chance():
    assert [] == violated(*BOTH, *killed(10, 1, CULPRIT, NEIGHBOUR), *side_by_side(11, 2))
    once_more = [*BOTH, *killed(10, 1, CULPRIT, NEIGHBOUR), *killed(11, 2, CULPRIT)]
    assert [] == violated(*once_more, worker(12), begins(CULPRIT, 3, 12), begins(NEIGHBOUR, 2, 12))


@each("how", [{"born": one_by_one}, {"signal": 11}, {"mode": "segv_in_await"}])
def test_who_was_alone_or_may_have_been_proven_guilty_is_no_suspect(how):
    second = [event for pid, job in ((11, CULPRIT), (12, NEIGHBOUR)) for event in killed(pid, 2, job, **how)]

    last = side_by_side(13, mode=how.get("mode", "lane_rest"))
    assert [] == violated(*BOTH, *killed(10, 1, CULPRIT, NEIGHBOUR), *second, *last)


def test_a_store_that_was_killed_may_have_forgotten_whom_it_suspected():
    def history(name):
        away = [("nemesis", {"name": name, "on": on}) for on in (1, 0)]
        return [*TWICE, *away, *side_by_side()]

    assert [] == violated(*history("kill_redis"))
    assert BESIDE == violated(*history("kill_steward"))


def deaths(kinds, fails):
    """Of one job: by each attempt, whether in a worker that runs several (w) or one (o)."""
    events = pushed(1, "l", queue="wide")
    for attempt, kind in enumerate(kinds, 1):
        born, is_last = worker if kind == "w" else one_by_one, attempt == len(kinds)
        events += killed(10 + attempt, attempt, CULPRIT, born=born, fails=is_last and fails)
    return events


@each("kinds", ["wwwww", "ooo", "owwwo", "wwooo", "oowww"])
def test_a_job_fails_by_as_many_deaths_as_crashes_are_allowed_and_two_suspicions(kinds):
    assert [] == violated(*deaths(kinds, fails=True))
    assert [] == violated(*deaths(kinds[:-1], fails=False))
    assert ["I31 charged without a proof"] == violated(*deaths(kinds[:-1], fails=True))
    assert ["I31 never charged"] == violated(*deaths(kinds, fails=False))


def test_of_a_job_whose_attempts_are_not_all_known_nothing_is_said():
    events = [one for one in deaths("www", fails=True) if one[0] != "release" or one[1]["a"] != 2]

    assert [] == violated(*events)
