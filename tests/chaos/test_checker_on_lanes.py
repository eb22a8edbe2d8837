"""The checker rules correctly on histories of jobs that run side by side, written by hand."""

from __future__ import annotations

from tests.chaos.lane_modes import DEADLY
from tests.chaos.test_checker_on_written_histories import END, RUN, calm, finish, kill, pushed, rule, said, start
from tests.support.each import each

_NANOSECONDS = 1_000_000_000
#: after every event of these histories
_LATER = 10**12
CULPRIT, NEIGHBOUR = "l.0", "l.1"
BOTH = pushed(2, "l", queue="wide")


def worker(pid=10, lanes=2):
    return ("worker", {"pid": pid, "master": 1, "lanes": lanes})


def death(pid=10):
    return ("death", {"pid": pid})


def begins(job=NEIGHBOUR, attempt=1, pid=10, mode="lane_nap", until=_LATER):
    return start(job, attempt, pid, m=mode, until=until)


def ends(job=NEIGHBOUR, attempt=1, pid=10):
    return finish(job, attempt, pid)


def violated(*events, step=1_000_000):
    """The rules that this chapter is about."""
    of_lanes = ("I28", "I29", "I30", "I32")
    return sorted(name for name in rule(*events, END, step=step).violations if name.startswith(of_lanes))


def interrupted(mode="segv_in_await"):
    """Both run, and the first ends their worker."""
    dies = [said("die", CULPRIT)] if "in_await" in mode else []
    return [*BOTH, worker(), begins(CULPRIT, mode=mode), begins(), *dies, death()]


AGAIN = [worker(11), begins(CULPRIT, 2, 11), ends(CULPRIT, 2, 11)]


@each("mode", sorted(DEADLY))
def test_a_neighbour_of_the_culprit_is_given_back_as_if_it_had_not_begun(mode):
    same = [begins(pid=11), ends(pid=11)]
    counted = [begins(attempt=2, pid=11), ends(attempt=2, pid=11)]

    assert [] == violated(*interrupted(mode), said("requeue", NEIGHBOUR, pid=1), *AGAIN, *same)
    assert ["I28 a neighbour was charged"] == violated(*interrupted(mode), *AGAIN, *counted)
    released = said("release", NEIGHBOUR, pid=1)
    assert ["I28 a neighbour was charged"] == violated(*interrupted(mode), released, *AGAIN, *counted)


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
