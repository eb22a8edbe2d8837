"""The chaos checker rules correctly on histories written by hand."""

from __future__ import annotations

import itertools

from tests.chaos.checker import INVALID, UNKNOWN, VALID, check
from tests.chaos.kept_steps import EFFECTS
from tests.chaos.ledger import Ledger, Torn, read
from tests.chaos.report import brief, table
from tests.support.each import each

RUN = ("run", {"seed": 1, "workers": 2, "seconds": 1, "retry_after": 5.0, "ahead": 1})
END = ("end", {"left": 0})


def pushed(count=1, stream="h", first=0, queue="high"):
    facts = {"p": stream, "lo": first, "hi": first + count - 1, "q": queue, "delay": 0}
    return [("enq_inv", facts), ("enq_ok", facts)]


def start(job="h.0", attempt=1, pid=10, **more):
    return ("start", {"id": job, "a": attempt, "pid": pid, **more})


def finish(job="h.0", attempt=1, pid=10):
    return ("finish", {"id": job, "a": attempt, "pid": pid})


def said(what, job="h.0", attempt=1, pid=10, **more):
    return (what, {"id": job, "a": attempt, "pid": pid, **more})


def kill(pid=10, why="worker"):
    return ("kill", {"pid": pid, "why": why, "sig": 9})


def calm(on):
    return ("nemesis", {"name": "calm", "on": on})


def rule(*events, step=1_000_000):
    """The ruling on these events, a millisecond apart unless they say when."""
    clock = itertools.count(1_000_000_000, step)
    return check({"t": next(clock), "f": what, **facts} for what, facts in [RUN, *events])


def violated(*events, **more):
    return sorted(rule(*events, END, **more).violations)


def test_a_job_that_was_pushed_started_and_finished_is_all_there_is_to_it():
    findings = rule(*pushed(), start(), finish(), said("ack"), END)

    assert ({}, [], VALID) == (findings.violations, findings.unknown, findings.code)


def test_an_acknowledged_push_that_never_came_to_anything_is_lost_and_where_is_said():
    done = [event for number in (1, 3) for event in (start(f"h.{number}"), finish(f"h.{number}"))]
    findings = rule(*pushed(5), *done, END)

    assert ["h.0 (prefix)", "h.2 (middle)", "h.4 (postfix)"] == findings.violations["I1 lost"]
    assert INVALID == findings.code


@each("where", ["failed", "quarantine", "ready"])
def test_what_the_store_still_knows_is_not_lost(where):
    assert [] == violated(*pushed(), ("stored", {"where": where, "id": "h.0"}))


def test_a_push_whose_answer_is_unknown_may_be_there_or_not():
    unsure = [(what, facts) for what, facts in pushed() if what == "enq_inv"]
    away = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]
    unsure.append(("enq_unknown", unsure[0][1]))

    assert [] == violated(*away, *unsure)
    assert [] == violated(*away, *unsure, start(), finish())


def test_a_push_fails_only_while_something_is_wrong_with_the_store():
    unsure = [(what, facts) for what, facts in pushed() if what == "enq_inv"]
    unsure.append(("enq_unknown", unsure[0][1]))

    def outage(name):
        return [("nemesis", {"name": name, "on": on}) for on in (1, 0)]

    assert ["I34 a push failed though the store was well"] == violated(*unsure)
    assert ["I34 a push failed though the store was well"] == violated(*outage("kill_workers"), *unsure)
    assert ["I34 a push failed though the store was well"] == violated(*outage("kill_host"), *unsure)
    assert [] == violated(*outage("kill_redis"), *unsure)
    assert ["I34 a push failed though the store was well"] == violated(
        *outage("kill_redis"), *unsure, step=20_000_000_000
    )


def test_a_job_that_nobody_pushed_is_invented():
    assert ["I2 invented"] == violated(start(), finish())


def test_a_second_start_needs_the_first_ones_death():
    again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert ["I4 overlap"] == violated(*pushed(), start(), *again)
    assert [] == violated(*pushed(), start(), kill(), *again)
    assert [] == violated(*pushed(), start(), said("die"), *again)
    assert [] == violated(*pushed(), start(), *again, ("death", {"pid": 10}))


def test_an_earlier_death_of_the_same_pid_explains_nothing():
    events = [*pushed(), kill(), ("death", {"pid": 10}), start(), start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert ["I4 overlap"] == violated(*events)


def test_an_attempt_that_ends_after_the_next_has_begun_is_an_overlap():
    late = [start(), kill(), start(attempt=2, pid=11), finish(), finish(attempt=2, pid=11)]

    assert ["I4 overlap"] == violated(*pushed(), *late)


def test_a_job_runs_twice_only_when_its_worker_died_before_it_could_settle():
    again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert ["I5 done twice, unexplained"] == violated(*pushed(), start(), finish(), *again)
    explained = rule(*pushed(), start(), finish(), kill(), *again, END)
    assert (VALID, 1) == (explained.code, explained.counts["twice"])


def test_a_worker_that_died_is_not_taken_for_a_later_one_with_its_pid():
    again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]
    dies = [*pushed(), start(), finish(), ("death", {"pid": 10}), *again]

    assert [] == violated(*dies, kill())


def test_a_job_that_raises_behind_its_last_line_runs_again_by_right():
    again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert [] == violated(*pushed(), start(), finish(), said("die"), said("release"), *again)
    others = [start(), finish(), said("die", pid=99)]
    assert ["I5 done twice, unexplained"] == violated(*pushed(), *others, *again)


def test_a_settlement_comes_later_where_others_crowd_the_machine_and_so_may_a_kill_before_it():
    def killed(times):
        again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]
        crowded = [*pushed(), start(), finish(), ("pace", {"times": times}), kill(), *again]
        return violated(*crowded, step=300_000_000)

    assert [] == killed(30.0)
    assert ["I5 done twice, unexplained"] == killed(3.0)


def test_the_death_of_a_worker_fails_no_job_before_the_third():
    def failed(attempt: int, error: str):
        return ("fail", {"id": "h.0", "a": attempt, "pid": 10, "e": error})

    there = ("stored", {"where": "failed", "id": "h.0"})
    assert ["I19 failed by a death"] == violated(*pushed(), start(), kill(), failed(1, "WorkerDied"), there)
    assert ["I19 failed by a death"] == violated(*pushed(), start(), kill(), failed(2, "TooManyAttempts"), there)
    assert [] == violated(*pushed(), start(), failed(1, "ValueError"), there)
    assert [] == violated(*pushed(), start(), kill(), failed(3, "WorkerDied"), there)


def test_only_the_attempt_that_was_meant_is_cancelled():
    def ordered(job: str, attempt: int):
        return ("cancel", {"id": job, "a": attempt})

    cancelled = ("fail", {"id": "h.0", "a": 1, "pid": 10, "e": "Cancelled"})
    there = ("stored", {"where": "failed", "id": "h.0"})
    assert [] == violated(*pushed(), start(), ordered("h.0", 1), cancelled, there)
    assert ["I33 another one cancelled"] == violated(*pushed(), start(), ordered("h.1", 1), cancelled, there)
    assert ["I33 another one cancelled"] == violated(*pushed(), start(), ordered("h.0", 2), cancelled, there)


def test_many_that_ran_twice_were_not_all_killed_in_one_short_moment():
    events = pushed(6)
    for number in range(6):
        job, pid = f"h.{number}", 100 + number
        events += [start(job, pid=pid), finish(job, pid=pid), kill(pid), start(job, 2, pid=11), finish(job, 2, pid=11)]

    assert ["I5 done twice, unexplained"] == violated(*events)


def test_a_worker_that_was_killed_may_have_done_a_whole_hand_that_nobody_settled():
    jobs = [f"h.{number}" for number in range(6)]
    done = [event for job in jobs for event in (start(job), finish(job))]
    again = [event for job in jobs for event in (start(job, 2, pid=11), finish(job, 2, pid=11))]

    assert [] == violated(*pushed(6), *done, kill(), *again)


def test_a_board_that_was_written_over_explains_what_its_dead_workers_had_done():
    over = [("nemesis", {"name": "scribble", "on": on}) for on in (1, 0)]
    events = pushed(6)
    for number in range(6):
        job, pid = f"h.{number}", 100 + number
        events += [start(job, pid=pid), finish(job, pid=pid), kill(pid), *over, start(job, 2, 11), finish(job, 2, 11)]
    first = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]

    assert [] == violated(*events)
    assert [] == violated(*events[:3], *first, *events[3:]), "whatever else was wrong before"


def test_a_worker_that_was_stopped_could_not_show_what_it_had_done_before_it_was_killed():
    done, again = [*pushed(), start(), finish()], [start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert [] == violated(*done, kill(why="stop"), kill(), *again, step=300_000_000)
    assert ["I5 done twice, unexplained"] == violated(*done, calm(1), kill(), *again, step=300_000_000)


def test_a_nemesis_excuses_a_second_run_only_when_a_lease_had_time_to_end():
    away = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]
    events = [*pushed(), start(), finish(), *away, start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert ["I5 done twice, unexplained"] == violated(*events)
    assert [] == violated(*events, step=2_000_000_000)


def test_a_loss_takes_what_many_workers_have_just_done_only_if_it_came_after_that():
    loss = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]
    a_lease = [calm(on) for _ in range(50) for on in (1, 0)]  # 5 s
    jobs = [(f"h.{number}", 100 + number) for number in range(6)]
    begun = [*pushed(6), *(start(job, pid=pid) for job, pid in jobs)]
    killed = [event for job, pid in jobs for event in (finish(job, pid=pid), kill(pid))]
    again = [event for job, _ in jobs for event in (start(job, 2, pid=11), finish(job, 2, pid=11))]

    assert [] == violated(*begun, *a_lease, *killed, *loss, *again, step=50_000_000)
    early = violated(*begun, *loss, *a_lease, *killed, *again, step=50_000_000)
    assert ["I5 done twice, unexplained"] == early


def test_what_laravels_worker_could_not_delete_runs_again():
    again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert [] == violated(*pushed(), start(), finish(), said("undeleted"), *again)
    assert ["I5 done twice, unexplained"] == violated(*pushed(), start(), finish(), said("undeleted", pid=12), *again)


def test_attempts_go_up_by_one():
    assert ["I6 attempts"] == violated(*pushed(), start(attempt=2), finish(attempt=2))
    assert [] == violated(*pushed(), kill(7, "steward"), start(attempt=2), finish(attempt=2))
    same = [start(), kill(), start(pid=11), finish(pid=11)]
    assert ["I6 attempts"] == violated(*pushed(), *same)
    soon, late = [calm(1), calm(0)], [calm(1), calm(0)] * 600
    assert [] == violated(*pushed(), *same, *soon, kill(7, "host"))
    assert ["I6 attempts"] == violated(*pushed(), *same, *late, kill(7, "host"))
    assert [] == violated(*pushed(), *same, said("requeue", pid=1))


def test_an_attempt_that_ended_before_its_first_line_is_known_from_its_release():
    assert [] == violated(*pushed(), said("release", pid=1), start(attempt=2), finish(attempt=2))


def test_a_payload_that_cannot_be_read_may_be_given_back():
    assert [] == violated(*pushed(), start(), finish(), said("requeue", ""))
    assert ["I2 invented"] == violated(*pushed(), start(), finish(), said("requeue", "elsewhere"))


def test_nothing_is_settled_twice_and_nothing_starts_after_it_failed():
    failed = [start(), said("fail"), ("stored", {"where": "failed", "id": "h.0"})]

    assert [] == violated(*pushed(), *failed)
    assert ["I5 settled twice"] == violated(*pushed(), *failed, said("fail"))
    assert "I5 started after it had failed" in violated(*pushed(), *failed, start(attempt=2), finish(attempt=2))


def test_a_release_may_be_told_of_after_the_failure_of_a_later_attempt():
    first = [start(), kill(), said("release")]
    second = [start(attempt=2, pid=11), said("fail", attempt=2, pid=11), ("stored", {"where": "failed", "id": "h.0"})]

    assert [] == violated(*pushed(), *first, *second)
    assert [] == violated(*pushed(), *first[:2], *second, first[2])
    assert ["I5 settled twice"] == violated(*pushed(), *first, *second, first[2])
    assert ["I5 settled twice"] == violated(*pushed(), *first, *second, said("release", attempt=2, pid=11))


def test_a_failure_without_a_record_is_found():
    assert ["I15 failed, but not recorded"] == violated(*pushed(), start(), said("fail"))
    assert ["I15 recorded without a reason"] == violated(
        *pushed(), ("stored", {"where": "failed without a reason", "id": "h.0"})
    )


def test_in_a_calm_few_jobs_are_overtaken():
    def ran(*numbers):
        jobs = [event for number in numbers for event in (start(f"t.{number}"), finish(f"t.{number}"))]
        return violated(calm(1), *pushed(6, "t"), *jobs, calm(0))

    assert [] == ran(0, 1, 2, 3, 4, 5)
    assert [] == ran(1, 0, 5, 2, 3, 4)
    assert ["I7 order"] == ran(4, 0, 1, 2, 3, 5)


def test_what_is_given_back_goes_before_the_backlog():
    def ran(after, nemesis="kill_workers", meanwhile=(), last=(), attempt=1):
        jobs = [event for number in range(1, 400) for event in (start(f"t.{number}"), finish(f"t.{number}"))]
        back = [start("t.0", attempt, pid=11), finish("t.0", attempt, pid=11)]
        events = [start("t.0"), kill(), said("requeue", "t.0", pid=1), *meanwhile]
        events += [*jobs[: 2 * after], *back, *jobs[2 * after :]]
        return violated(("nemesis", {"name": nemesis, "on": 1}), *pushed(400, "t"), *events, *last)

    assert [] == ran(after=1)
    assert ["I7 given back, but not to the head"] == ran(after=399)
    assert [] == ran(after=399, nemesis="lock_rows")  # somebody may have locked its row
    # It was in another hand meanwhile, and given back once more; or in its worker's, behind a slow job.
    assert [] == ran(after=399, last=[said("requeue", "t.0", pid=12)])
    assert [] == ran(after=399, meanwhile=[*pushed(), start(pid=11), finish(pid=11)])
    # It was in another hand meanwhile, whose lease ended.
    assert [] == [rule for rule in ran(after=399, attempt=2) if rule.startswith("I7")]


def test_a_delayed_job_starts_neither_before_its_time_nor_long_after():
    assert ["I8 started too early"] == violated(*pushed(), start(due=2_000_000_000), finish())
    assert ["I8 started too late"] == violated(*pushed(), start(due=1), finish(), step=12_000_000_000)


def test_the_dead_of_a_deadline_die_when_it_is_over():
    def died(deadline, step=1_000_000):
        again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]
        return violated(*pushed(), start(d=deadline), ("death", {"pid": 10}), *again, step=step)

    assert [] == died(1_004_000_000)
    assert [] == died(1_094_000_000), "its first line came that long after its alarm was set"
    assert ["I10 killed before its deadline"] == died(1_904_000_000)
    assert ["I10 killed too late"] == died(1_004_000_000, step=12_000_000_000)
    assert "I10 never killed" in violated(*pushed(), start(d=1_004_000_000), kill(why="end"), ("death", {"pid": 10}))
    assert "I10 never killed" in violated(
        *pushed(), start(d=1_004_000_000), ("stored", {"where": "ready", "id": "h.0"})
    )


def test_a_killed_workers_job_is_soon_taken_up_again():
    events = [*pushed(), start(), kill(), start(attempt=2, pid=11), finish(attempt=2, pid=11)]

    assert [0.001] == rule(*events, END).spreads["killed worker's job starts again"]
    assert "I11 not recovered" in violated(*events, step=12_000_000_000)


@each(
    ("event", "expected"),
    [
        (("orphan", {"pid": 9, "title": "x"}), "I9 orphan"),
        (("leftover", {"path": "run/board"}), "I9 file left behind"),
        (("bad_stop", {"pool": "near", "code": None}), "I9 did not stop"),
        (("size", {"pool": "near", "n": 1, "want": 2, "after": 10.0}), "I12 size"),
        (("secret", {"where": "log"}), "I16 secret"),
        (("copies", {"id": "h.0", "n": 2}), "I3 copies"),
        (("pool_died", {"pool": "near", "code": 1}), "the pool died"),
    ],
)
def test_what_was_seen_from_outside_counts(event, expected):
    assert [expected] == violated(*pushed(), start(), finish(), event)


def test_growth_is_found_and_an_outlier_is_not_growth():
    def sampled(*fds):
        return violated(*[("sample", {"pid": 5, "fds": number, "rss": 100, "clients": 3}) for number in fds])

    assert ["I13 growth"] == sampled(*range(10, 40, 3))
    assert [] == sampled(*[10] * 5, 300, *[10] * 5)


@each("end", [(), (("end", {"left": 3}),)])
def test_a_history_without_its_end_is_unknown_and_unknown_is_red(end):
    assert UNKNOWN == rule(*pushed(), start(), finish(), *end).code


def test_what_is_wrong_in_an_unfinished_history_is_wrong():
    assert INVALID == rule(start(), finish()).code


def test_a_cut_ledger_is_unknown(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    for what, facts in [RUN, *pushed(), start(), finish(), END]:
        ledger.write(what, **facts)
    whole = (tmp_path / "ledger").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-3])

    assert VALID == check(read(tmp_path / "ledger")).code
    assert UNKNOWN == check(read(tmp_path / "cut")).code


def test_a_run_without_a_job_proves_nothing():
    assert UNKNOWN == rule(END).code


def test_half_a_line_may_come_of_a_kill_but_not_many():
    half, done = Torn(b'{"t":1'), [*pushed(), start(), finish(), END]
    events = [{"t": number, "f": what, **facts} for number, (what, facts) in enumerate([RUN, *done])]

    assert VALID == check([half, *events]).code
    assert UNKNOWN == check([half] * 5 + events).code


def test_what_was_written_behind_half_a_line_counts(tmp_path):
    (tmp_path / "ledger").write_bytes(b'{"t":1,"f":"sta{"t":2,"f":"end","left":0}\n')
    torn, end = read(tmp_path / "ledger")

    assert isinstance(torn, Torn)
    assert {"t": 2, "f": "end", "left": 0} == end


def test_the_table_says_what_is_wrong_with_examples():
    shown = table(rule(*pushed(2), start(), finish(), END))

    assert "VIOLATED  I1 lost: 1\n          h.1 (postfix)\n" in shown
    assert shown.endswith("INVALID, exit code 1\n")


def test_a_line_says_how_much_happened_and_what_was_found():
    assert "jobs 2, starts 1, finishes 1, kills 0; found I1 lost" == brief(rule(*pushed(2), start(), finish(), END))


def retried(*events):
    return [*pushed(stream="r"), *events]


def failed(attempt=1):
    return [start("r.0", attempt), said("fail", "r.0", attempt)]


def test_what_people_try_again_fails_as_often_as_they_like_and_must_be_recorded_at_the_end():
    stored = ("stored", {"where": "failed", "id": "r.0"})

    assert [] == violated(*retried(*failed(), *failed(), *failed(), stored))
    assert ["I1 lost", "I15 failed, but not recorded"] == violated(*retried(*failed(), *failed()))


def test_what_people_try_again_may_be_done_by_laravel_which_fails_it_not():
    assert [] == violated(*retried(*failed(), start("r.0"), finish("r.0")))


def test_a_retry_that_was_broken_off_leaves_two_of_one_job_and_others_must_not():
    stored = ("stored", {"where": "failed", "id": "r.0"})

    assert [] == violated(*retried(("copies", {"id": "r.0", "n": 2}), stored))
    assert ["I3 copies"] == violated(*pushed(), start(), finish(), ("copies", {"id": "h.0", "n": 2}))


def test_what_another_store_holds_is_not_to_be_touched():
    assert ["I2 invented"] == violated(*pushed(), start(), finish(), said("requeue", "5a3f-11"))


def test_good_jobs_go_on_while_another_store_is_away():
    away, back = ("other", {"on": 1}), ("other", {"on": 0})
    good = [event for number in range(4) for event in (start(f"h.{number}"), finish(f"h.{number}"))]
    bad = [start("r.0"), ("stored", {"where": "failed", "id": "r.0"})]

    assert [] == violated(*pushed(4), away, *good, back, step=1_000_000_000)
    assert ["I17 held up by the other store"] == violated(
        *pushed(4), *pushed(stream="r"), away, *good[:2], *bad, back, *good[2:], step=1_000_000_000
    )


def test_an_async_job_is_harmed_by_nothing_that_another_left_behind():
    innocent = start(m="nap_async")
    again = [start(attempt=2), finish(attempt=2)]

    assert ["I18 an innocent job was harmed"] == violated(*pushed(), innocent, said("die"), said("release"), *again)
    assert [] == violated(*pushed(), innocent, said("die"), said("release", pid=99), *again)
    assert ["I18 a task outlived its job"] == violated(*pushed(), start(), finish(), said("ghost"))


def soft(after, **more):
    return ("soft", {"id": "h.0", "a": 1, "since": 1_000_000_000, "after": after, **more})


def test_a_soft_timeout_comes_at_its_time():
    ended = [said("die"), said("release"), start(attempt=2), finish(attempt=2)]

    assert [] == violated(*pushed(), start(), soft(0.11), *ended)
    assert ["I23 soft timeout too early"] == violated(*pushed(), start(), soft(0.05), *ended)
    assert ["I23 soft timeout too late"] == violated(*pushed(), start(), soft(9.0), *ended)
    assert [] == violated(*pushed(), ("nemesis", {"name": "freeze", "on": 1}), start(), soft(9.0), *ended)
    assert ["I4 overlap"] == violated(*pushed(), start(), *ended[1:])  # in a job that has none


@each("mode", ["soft_past", "async_soft_past"])
def test_a_handler_that_waits_for_its_soft_timeout_gets_it_unless_it_is_killed_before(mode):
    waits = [*pushed(), start(m=mode)]
    later = [said("die"), start(attempt=2), finish(attempt=2)]

    assert ["I23 no soft timeout"] == violated(*waits, *later, step=2_000_000_000)
    assert [] == violated(*waits, soft(0.11), *later, step=2_000_000_000)
    assert [] == violated(*waits, kill(), *later, step=2_000_000_000)
    assert [] == violated(*waits, kill(why="stop"), *later, step=2_000_000_000)


def step(*events, stored="", state=None):
    """``state``: what is said of it; what became of it, unless given."""
    known = {"": "done", "failed": "failed"}.get(stored, "running") if state is None else state
    events = (*events, ("state", {"id": "c.0", "is_now": known})) if known else events
    there = [("stored", {"where": stored, "id": "c.0"})] if stored else []
    return violated(*pushed(stream="c", queue="steps"), *events, *there)


def learned(*ends):
    return [("outcome", {"id": "c.0", "how": end}) for end in ends]


DONE = [start("c.0"), finish("c.0")]
LOST = [start("c.0"), said("fail", "c.0")]


def test_laravel_learns_once_how_a_step_ended():
    assert [] == step(*DONE, *learned("succeeded"))
    assert [] == step(*LOST, *learned("lost"), stored="failed")
    assert ["I20 no outcome"] == step(*DONE)
    assert ["I20 no outcome"] == step(*LOST, stored="failed")
    assert ["I20 more than one outcome"] == step(*DONE, *learned("succeeded", "succeeded"))
    assert ["I20 more than one outcome"] == step(*LOST, *learned("lost", "succeeded"), stored="failed")


def test_laravel_learns_nothing_else():
    assert ["I20 wrong outcome"] == step(*DONE, *learned("lost"))
    assert ["I20 wrong outcome"] == step(*LOST, *learned("succeeded"), stored="failed")
    assert [] == step(*DONE, stored="reserved")
    assert ["I20 wrong outcome"] == step(*DONE, *learned("succeeded"), stored="reserved")


def test_a_unique_lock_lasts_as_long_as_its_job():
    ended = [*DONE, *learned("succeeded")]

    assert ["I21 lock held by a job that is over"] == step(*ended, ("locked", {"id": "c.0"}))
    assert ["I21 lock released before its job was over"] == step(*ended, ("unlocked", {"id": "c.0"}))
    assert [] == step(start("c.0"), kill(), ("locked", {"id": "c.0"}), stored="quarantine")  # as one that waits


def followed(state, *events, stored=""):
    return step(*events, stored=stored, state=state)


def test_what_is_said_of_a_tracked_job_is_what_became_of_it():
    done, lost = [*DONE, *learned("succeeded")], [*LOST, *learned("lost")]
    waits = {"stored": "reserved"}

    assert [] == followed("done", *done)
    assert [] == followed("failed", *lost, stored="failed")
    assert [] == followed("running", start("c.0"), **waits)
    assert ["I22 no state"] == followed("", *done)
    assert ["I22 a job that is over counts as not over"] == followed("running", *done)
    assert ["I22 a job that is over counts as not over"] == followed("queued", *lost, stored="failed")
    assert ["I22 a job counts as over that is not, or not so"] == followed("failed", *done)
    assert ["I22 a job counts as over that is not, or not so"] == followed("done", start("c.0"), **waits)


# Schedules


def tick(due=100):
    return ("tick", {"due": due})


def test_times_of_a_schedule_are_counted_and_none_may_be_there_twice():
    usual = [*pushed(), start(), finish()]

    assert [] == violated(*usual, tick(100), tick(101), ("behind", {"seconds": 0.9}))
    assert ["I24 pushed twice"] == violated(*usual, tick(100), tick(101), tick(100))
    assert 2 == rule(*usual, tick(100), tick(101), END).counts["scheduled times"]


def test_a_schedule_must_go_on_when_everything_is_healed():
    assert ["I24 no longer pushed"] == violated(*pushed(), start(), finish(), tick(), ("behind", {"seconds": 12.0}))


# Traces


WORKER = ("worker", {"pid": 10, "master": 1})
SPAN, OF_KILLED = said("span"), said("killed_span", pid=5)
DEATH = ("death", {"pid": 10})
AGAIN = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]


def test_an_attempt_that_ended_has_the_span_of_its_worker():
    usual = [*pushed(), WORKER, start(), finish()]

    assert [] == violated(*usual, SPAN)
    assert ["I27 no span"] == violated(*usual)
    assert ["I27 more than one span"] == violated(*usual, SPAN, SPAN)
    assert ["I27 more than one span"] == violated(*usual, SPAN, said("span", pid=99))
    assert ["I27 more than one span"] == violated(*usual, SPAN, OF_KILLED)
    assert [] == violated(*usual, kill(), DEATH)
    assert ["I27 no span"] == violated(*usual, said("ack"), kill(), DEATH)
    assert [] == violated(*pushed(), start(), finish())  # by Laravel's worker


def test_an_attempt_that_was_killed_has_the_span_of_the_steward():
    usual = [*pushed(), WORKER, start(), kill(), DEATH]

    assert [] == violated(*usual, OF_KILLED, *AGAIN)
    assert ["I27 no span"] == violated(*usual, *AGAIN)
    assert ["I27 more than one span"] == violated(*usual, OF_KILLED, OF_KILLED, *AGAIN)
    for_its_lease = ("lease_kill", {"pid": 10})
    assert "I27 no span" not in violated(*usual[:-2], for_its_lease, *usual[-2:], *AGAIN), "I36 rules on that"
    assert [] == violated(*usual, ("nemesis", {"name": "kill_steward", "on": 1}), *AGAIN)
    assert [] == violated(*usual, said("requeue"), start(pid=11), finish(pid=11), said("span", pid=11))
    assert [] == violated(*usual, *AGAIN, said("span", attempt=2, pid=11), said("stale", pid=5))
    # cancelled and given back, and then cancelled again before the first line of its handler
    back = [OF_KILLED, said("requeue", pid=5), OF_KILLED, said("requeue", pid=5)]
    assert [] == violated(*usual, *back, *AGAIN)
    assert ["I27 more than one span"] == violated(*usual, *back, OF_KILLED, OF_KILLED, *AGAIN)
    # and given back twice more by its own worker, which goes on
    itself = [start(pid=11), said("die", pid=11), said("span", pid=11), said("requeue", pid=11)]
    assert [] == violated(*usual, *back, *itself, *itself, *AGAIN)
    spans = [said("span", pid=11)] * 3
    assert ["I27 more than one span"] == violated(*usual, *back, *itself, *itself, *spans, *AGAIN)


def test_an_attempt_whose_worker_was_killed_before_it_was_settled_may_have_both_spans():
    raised = [*pushed(), WORKER, start(), said("die"), SPAN]

    assert [] == violated(*raised, kill(), OF_KILLED, *AGAIN)
    assert ["I27 more than one span"] == violated(*raised, OF_KILLED, *AGAIN)
    assert ["I27 more than one span"] == violated(*raised, said("release"), kill(), OF_KILLED, *AGAIN)


def test_nor_is_one_settled_that_ended_after_its_deadline():
    """A function in a thread ends, but counts as timed out. Its worker is killed before it has settled that."""
    late = [*pushed(), WORKER, start(), finish(), said("span", e="TimedOut")]

    assert [] == violated(*late, kill(), OF_KILLED, *AGAIN)
    assert "I27 more than one span" in violated(*late, OF_KILLED, *AGAIN)
    assert ["I27 more than one span"] == violated(*late, said("release"), kill(), OF_KILLED, *AGAIN)


def test_nor_is_a_member_of_a_flow_before_its_settlement():
    done = [*pushed(9, "g"), WORKER, start("g.0"), finish("g.0"), said("span", "g.0")]

    assert "I27 more than one span" not in violated(*done, kill(), said("killed_span", "g.0", pid=5))
    assert "I27 more than one span" in violated(*done, said("killed_span", "g.0", pid=5))


def test_nor_has_one_that_is_killed_as_soon_as_it_has_settled_shown_that_to_the_steward():
    settled = [*pushed(), WORKER, start(), said("die"), SPAN, said("release")]
    refused = [OF_KILLED, said("stale", pid=5)]

    assert [] == violated(*settled, kill(), DEATH, *refused, *AGAIN)
    late = [calm(1), calm(0)] * 60
    assert ["I27 more than one span"] == violated(*settled, *late, kill(), DEATH, *refused, *AGAIN)


# Alerts


def alert(state="raised", kind="quarantine", pid=50, master=1):
    return ("alert", {"state": state, "kind": kind, "subject": "high", "pid": pid, "master": master})


def notice(state="raised", kind="quarantine", pool="near"):
    return ("notice", {"state": state, "kind": kind, "subject": "high", "pool": pool})


def alerted(*events):
    return violated(*pushed(), start(), finish(), *events)


def test_an_alert_is_raised_once_by_a_pool_until_it_is_cleared():
    died = kill(50, "steward")

    assert [] == alerted(alert(), alert("cleared"), alert(), alert(master=2))
    assert ["I26 raised twice"] == alerted(alert(), alert())
    assert ["I26 raised twice"] == alerted(alert(), died, alert(pid=51))
    assert [] == alerted(alert(), ("nemesis", {"name": "vanish", "on": 1}), alert(pid=51))
    # Its last steward may have cleared what came and went, and died before it could say so.
    assert [] == alerted(alert(kind="running"), died, alert(kind="running", pid=51))
    assert ["I26 raised twice"] == alerted(alert(kind="running"), alert(kind="running", pid=51))


def test_an_alert_is_noticed_once_by_all_pools_until_it_is_cleared():
    again = [notice(), notice(pool="far")]
    running = [notice(kind="running"), notice(kind="running", pool="far")]

    assert [] == alerted(notice(), notice("cleared"), notice(pool="far"))
    assert ["I26 noticed twice"] == alerted(*again)
    assert ["I26 noticed twice"] == alerted(*again, ("nemesis", {"name": "kill_steward", "on": 1}))
    assert [] == alerted(("nemesis", {"name": "kill_redis", "on": 1}), *again)
    assert ["I26 noticed twice"] == alerted(*running)
    assert [] == alerted(*running, alert("cleared", kind="running"))  # its notice is still on its way


def test_a_notice_sent_without_the_store_may_come_again_only_if_its_pool_ended_before_it_could_say_so():
    away = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]
    again = ("notice", {**notice()[1], "t": 60_000_000_000})

    assert ["I26 noticed twice"] == alerted(*away, notice(), again)
    assert [] == alerted(*away, notice(), kill(50, "master"), again)
    assert ["I26 noticed twice"] == alerted(notice(), kill(50, "master"), again)


def paced(times: float):
    return [("pace", {"times": times})] * 20


def test_what_comes_late_on_a_machine_that_others_crowd_is_neither_a_violation_nor_valid():
    late = [*pushed(), start(due=1), finish()]
    crowded = rule(*paced(40.0), *late, END, step=12_000_000_000)

    assert ({}, UNKNOWN) == (crowded.violations, crowded.code)
    assert "I8 started too late: 1, but for 10 s the machine was 40 times too slow" in table(crowded)
    assert ["I8 started too late"] == violated(*paced(3.0), *late, step=12_000_000_000)
    assert ["I1 lost"] == violated(*paced(40.0), *pushed())


def test_on_a_crowded_machine_a_done_job_may_wait_for_its_settlement_for_longer_than_its_lease():
    again = [start(attempt=2, pid=11), finish(attempt=2, pid=11)]
    soon, late = [*pushed(), start(), finish(), *again], {"step": 5_000_000_000}

    crowded = rule(*paced(40.0), *soon, END, **late)
    assert ({}, UNKNOWN) == (crowded.violations, crowded.code)
    assert ["I5 done twice, unexplained"] == [*crowded.doubted]
    assert ["I5 done twice, unexplained"] == violated(*paced(3.0), *soon, **late)
    assert ["I5 done twice, unexplained"] == violated(*paced(40.0), *soon)


def kept(*records, before=(), after=(), step=1_000_000, **run):
    """The rules broken where these records are kept of a job that two workers have had, the second one done."""
    job, workers = "t.1", [("worker", {"pid": pid, "master": 1}) for pid in (10, 11)]
    first = [start(job), said("die", job), said("release", job)]
    second = [start(job, 2, 11), finish(job, 2, 11), said("ack", job, 2, 11)]
    there = [("kept", {"id": job, "a": a, "pid": pid, "lost": lost}) for a, pid, lost in records]
    events = [*pushed(stream="t", first=1), *before, *first, *second, *after, *there]
    return violated(("run", RUN[1] | run), *workers, *events, step=step)


def test_each_settled_attempt_has_one_record_and_was_not_lost():
    assert [] == kept((1, 10, False), (2, 11, False), records=True)
    assert ["I33 not recorded"] == kept((1, 10, False), records=True)
    assert ["I33 not recorded"] == kept((2, 11, False), records=True)
    assert ["I33 recorded twice"] == kept((1, 10, False), (2, 11, False), (2, 11, False), records=True)
    assert ["I33 settled, and recorded as lost"] == kept((1, 10, False), (2, 11, True), records=True)
    assert [] == kept()


def test_an_attempt_may_have_no_record_where_the_store_was_full_until_its_lease_was_ended():
    full, over = [("nemesis", {"name": "out_of_memory", "on": on}) for on in (1, 0)]

    assert [] == kept((1, 10, False), after=[full, over], records=True)
    assert ["I33 not recorded"] == kept((1, 10, False), before=[full, over], records=True)
    assert ["I33 not recorded"] == kept((1, 10, False), after=[full, over], step=600_000_000, records=True)


def effects(*names, attempt=1):
    return [("effect", {"id": "h.0", "a": attempt, "n": name}) for name in names]


def test_an_effect_happens_again_only_where_its_job_begins_again():
    begun, again = start(m="stepped"), start(m="stepped", attempt=2, pid=11)
    names = sorted(EFFECTS)
    killed = [kill(), ("death", {"pid": 10}), said("release")]

    assert [] == violated(*pushed(), begun, *effects(*names), finish())
    assert ["S1 effect left out"] == violated(*pushed(), begun, *effects(*names[1:]), finish())
    assert ["S2 effect again"] == violated(*pushed(), begun, *effects(*names, names[0]), finish())
    rest = [again, *effects(*names[3:], attempt=2), finish(attempt=2, pid=11)]
    assert [] == violated(*pushed(), begun, *effects(*names[:4]), *killed, *rest)
    assert ["S2 effect again"] == violated(*pushed(), begun, *effects(*names[:5]), *killed, *rest)


def test_an_attempt_that_repeats_nothing_excuses_no_other_that_repeats_two_effects():
    names = sorted(EFFECTS)
    first = [start(m="stepped"), *effects(*names[:2]), kill(), ("death", {"pid": 10}), said("release")]
    second = [start(m="stepped", attempt=2, pid=11), *effects(*names[2:6], attempt=2)]
    killed = [kill(11), ("death", {"pid": 11}), said("release", attempt=2, pid=11)]
    third = [start(m="stepped", attempt=3, pid=12), finish(attempt=3, pid=12)]

    once = effects(*names[5:], attempt=3)
    assert [] == violated(*pushed(), *first, *second, *killed, third[0], *once, third[1])
    twice = effects(*names[4:], attempt=3)
    assert ["S2 effect again"] == violated(*pushed(), *first, *second, *killed, third[0], *twice, third[1])


def test_a_job_whose_second_attempt_was_run_by_laravel_needs_no_more_of_its_steps():
    killed = [kill(), ("death", {"pid": 10}), said("release")]
    begun, at_laravel = start(m="stepped"), start(attempt=2, pid=11)

    assert [] == violated(*pushed(), begun, *effects("step 0"), *killed, at_laravel, finish(attempt=2, pid=11))


def test_a_member_of_a_flow_that_begins_before_what_it_follows_has_ended_is_too_early():
    flow = pushed(9, "g")
    early = [*flow, start("g.0"), start("g.6")]
    in_time = [*flow, start("g.0"), finish("g.0"), start("g.6", pid=11)]

    assert "I35 a member began too early" in violated(*early)
    assert "I35 a member began too early" not in violated(*in_time)


def test_a_member_runs_again_if_its_worker_ends_before_it_begins_another_job():
    again = [start("g.0", 2, 11), finish("g.0", 2, 11)]
    done = [*pushed(9, "g"), *pushed(), start("g.0"), finish("g.0")]
    slow = [calm(1), calm(0)] * 500
    other = [start(), finish()]

    twice = "I5 done twice, unexplained"
    assert twice not in violated(*done, *slow, ("death", {"pid": 10}), *again)
    assert twice in violated(*done, *other, *slow, ("death", {"pid": 10}), *again)
    assert twice in violated(*done, *slow, *again)


def test_what_never_began_of_a_flow_is_lost_unless_another_member_has_failed():
    flow = [*pushed(18, "g"), start("g.0"), said("fail", "g.0"), ("stored", {"where": "failed", "id": "g.0"})]

    assert [f"g.{number} (postfix)" for number in range(9, 18)] == rule(*flow, END).violations["I1 lost"]


def test_a_board_may_be_written_over_by_a_job_that_begins_late():
    over = [("nemesis", {"name": "scribble", "on": on}) for on in (1, 0)]
    scribbles = [start("h.1", 1, 12, m="scribble"), finish("h.1", 1, 12)]
    hit = [WORKER, start(), DEATH, *AGAIN]

    assert "I27 no span" not in violated(*pushed(2), *over, *scribbles, *hit)
    assert "I27 no span" in violated(*pushed(2), *over, *scribbles, *[calm(1), calm(0)] * 600, *hit)


def lease_kill(*nemeses, wait=0):
    between = [("nemesis", {"name": name, "on": on}) for name in nemeses for on in (1, 0)]
    return [*between, *[("pace", {"times": 1.0})] * wait, ("lease_kill", {"pid": 10})]


def test_nobody_is_killed_for_a_lease_that_could_be_renewed():
    rule_of_leases = ["I36 killed for a lease that could be renewed"]
    job = *pushed(), start(), finish(), said("ack")

    assert rule_of_leases == violated(*job, *lease_kill())
    assert rule_of_leases == violated(*job, *lease_kill("kill_steward", "kill_workers"))
    assert [] == violated(*job, *lease_kill("stop_steward"))
    assert [] == violated(*job, *lease_kill("stop_redis", wait=5), step=1_000_000_000)
    assert rule_of_leases == violated(*job, *lease_kill("stop_redis", wait=15), step=1_000_000_000)
    later = [*lease_kill("stop_redis", wait=5)[:-1], *job, *lease_kill(wait=1)]
    assert rule_of_leases == violated(*later, step=1_000_000_000), "that lease began after it"
