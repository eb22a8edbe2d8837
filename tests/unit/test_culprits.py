"""Who answers for the death of a worker that ran several jobs at once."""

from __future__ import annotations

from dataclasses import replace

from queuepool.board.held_jobs import Stage
from queuepool.steward.culprits import Cause, Charge, CrashedIn, Culprits, Evidence, LaneAtDeath, culprits_of
from tests.support.each import each

#: a minute from the start of the host; lanes 0 and 1 run a job without a deadline
NOW = 60.0
TWO = (LaneAtDeath(0), LaneAtDeath(1))
#: past its deadline and its grace, with a second to end
OBSTINATE = LaneAtDeath(0, deadline=NOW - 1.0, told_for=1.0)
SUSPECT = LaneAtDeath(0, is_suspect=True)
THREADED = LaneAtDeath(1, has_thread=True)


def ruled(cause: Cause, *lanes: LaneAtDeath, **facts: object) -> Culprits:
    return culprits_of(replace(Evidence(cause, lanes, NOW), **facts))


def ruling(charged: dict[int, Charge], *, suspects: tuple[int, ...] = (), innocent: tuple[int, ...] = ()) -> Culprits:
    return Culprits(charged, frozenset(suspects), frozenset(innocent))


@each("cause", Cause)
def test_a_worker_without_a_job_at_work_has_no_culprit(cause):
    unbegun = LaneAtDeath(0, Stage.RESERVED), LaneAtDeath(1, Stage.DONE), LaneAtDeath(2, Stage.SETTLED)

    assert ruling({}) == ruled(cause, on_cpu=1, since=0.0)
    assert ruling({}) == ruled(cause, *unbegun, on_cpu=1, since=0.0)


def test_a_stop_is_nobodys_fault():
    assert ruling({}, innocent=(0, 1)) == ruled(Cause.STOP, SUSPECT, LaneAtDeath(1), on_cpu=1)


def test_a_lost_lease_is_its_own_lanes_affair():
    lost = LaneAtDeath(1, lost_lease=True)

    assert ruling({1: Charge.LOST}, innocent=(0,)) == ruled(Cause.LEASE, SUSPECT, lost, on_cpu=0)


# The alarm


def test_who_was_told_to_end_while_the_loop_was_free_is_late():
    assert ruling({0: Charge.LATE}, innocent=(1,)) == ruled(Cause.DEADLINE, OBSTINATE, LaneAtDeath(1))


@each(
    "lane",
    [
        replace(OBSTINATE, told_for=None),
        replace(OBSTINATE, told_for=0.4),
        replace(OBSTINATE, deadline=NOW - 0.9),
        replace(OBSTINATE, deadline=0.0),
    ],
)
def test_who_was_not_told_in_time_is_only_suspected(lane):
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.DEADLINE, lane, LaneAtDeath(1))


def test_who_blocks_the_loop_is_charged_and_not_who_is_late_by_that():
    late = replace(OBSTINATE, told_for=None)

    assert ruling({1: Charge.BLOCKED}, innocent=(0,)) == ruled(
        Cause.DEADLINE, late, LaneAtDeath(1, deadline=NOW + 1), on_cpu=1, since=NOW - 0.5
    )


def test_who_blocks_the_loop_beyond_its_own_deadline_is_late():
    assert ruling({1: Charge.LATE}, innocent=(0,)) == ruled(
        Cause.DEADLINE, LaneAtDeath(0), LaneAtDeath(1, deadline=NOW), on_cpu=1, since=NOW - 9.0
    )


def test_a_step_that_has_just_begun_is_innocent():
    assert ruling({0: Charge.LATE}, innocent=(1,)) == ruled(
        Cause.DEADLINE, OBSTINATE, LaneAtDeath(1), on_cpu=1, since=NOW - 0.4
    )
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.DEADLINE, *TWO, on_cpu=1, since=NOW - 0.4)


def test_who_is_late_by_itself_is_charged_although_another_has_just_kept_the_loop():
    assert ruling({0: Charge.LATE}, innocent=(1,)) == ruled(
        Cause.DEADLINE, OBSTINATE, LaneAtDeath(1), on_cpu=1, since=NOW - 0.6
    )


def test_a_longer_grace_is_a_longer_patience():
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.DEADLINE, *TWO, on_cpu=1, since=NOW - 1.0, grace=4.0)


def test_the_hook_of_a_job_that_is_done_costs_nobody_anything():
    done = LaneAtDeath(1, Stage.DONE)

    assert ruling({}, innocent=(0,)) == ruled(Cause.DEADLINE, LaneAtDeath(0), done, on_cpu=1, since=NOW - 5.0)
    assert ruling({}, innocent=(0,)) == ruled(Cause.FAULT, LaneAtDeath(0), done, on_cpu=1)


# Faults and exits


@each("crashed_in", [CrashedIn.LOOP, CrashedIn.UNKNOWN])
@each("stage", [Stage.RUNNING, Stage.READING])
def test_a_fault_is_of_the_step_that_runs(stage, crashed_in):
    assert ruling({1: Charge.CRASHED}, innocent=(0,)) == ruled(
        Cause.FAULT, LaneAtDeath(0), LaneAtDeath(1, stage), on_cpu=1, crashed_in=crashed_in
    )


def test_a_fault_between_steps_may_be_anybodys():
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.FAULT, *TWO, crashed_in=CrashedIn.LOOP)


@each("lane", [LaneAtDeath(1), THREADED])
def test_a_fault_in_another_thread_may_be_anybodys(lane):
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.FAULT, LaneAtDeath(0), lane, on_cpu=0, crashed_in=CrashedIn.OTHER)


def test_an_exit_during_a_step_may_be_of_a_thread():
    lanes = LaneAtDeath(0), THREADED, LaneAtDeath(2)

    assert ruling({}, suspects=(0, 1), innocent=(2,)) == ruled(Cause.FAULT, *lanes, on_cpu=0)
    assert ruling({1: Charge.CRASHED}, innocent=(0, 2)) == ruled(Cause.FAULT, *lanes, on_cpu=1)
    assert ruling({0: Charge.CRASHED}, innocent=(1, 2)) == ruled(
        Cause.FAULT, *lanes, on_cpu=0, crashed_in=CrashedIn.LOOP
    )


def test_a_thread_may_keep_the_interpreters_lock_from_a_step_that_seems_to_block():
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.DEADLINE, LaneAtDeath(0), THREADED, on_cpu=0, since=NOW - 9.0)


def test_no_thread_has_kept_the_lock_while_the_main_thread_was_seen_to_go_on():
    def blocked(on_cpu: int, watched: float):
        lanes, facts = (LaneAtDeath(0), THREADED), {"since": NOW - 9.0, "watched": watched}
        return ruled(Cause.DEADLINE, *lanes, on_cpu=on_cpu, **facts)

    assert ruling({0: Charge.BLOCKED}, innocent=(1,)) == blocked(0, 0.5)
    assert ruling({}, suspects=(0, 1)) == blocked(0, 0.4)
    assert ruling({}, innocent=(0, 1)) == blocked(2, 0.5), "a hook, or a task that is no job's"
    assert ruling({}, suspects=(1,), innocent=(0,)) == blocked(2, 0.4)


# Suspects


def test_a_kill_from_outside_proves_nothing():
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.KILLED, *TWO, on_cpu=1)


def test_the_one_suspect_is_charged_and_the_others_are_suspected():
    assert ruling({0: Charge.SUSPECTED}, suspects=(1,)) == ruled(Cause.KILLED, SUSPECT, LaneAtDeath(1))


def test_a_suspect_that_cannot_have_done_it_is_innocent():
    lanes = replace(SUSPECT, number=2), LaneAtDeath(0), THREADED

    assert ruling({}, suspects=(0, 1), innocent=(2,)) == ruled(Cause.FAULT, *lanes, on_cpu=0)


def test_a_suspect_is_innocent_where_another_is_proven_guilty():
    assert ruling({1: Charge.CRASHED}, innocent=(0,)) == ruled(Cause.FAULT, SUSPECT, LaneAtDeath(1), on_cpu=1)


def test_two_suspects_side_by_side_prove_nothing_against_either():
    assert ruling({}, suspects=(0, 1)) == ruled(Cause.KILLED, SUSPECT, replace(SUSPECT, number=1))


# A main thread that showed no life

STALLED = {"at": NOW, "silence": 30.0}


def stalled(*lanes: LaneAtDeath, **facts: object) -> Culprits:
    return ruled(Cause.STALL, *lanes, **{**STALLED, **facts})


def test_nobody_answers_for_a_main_thread_that_hung_while_the_loop_went_on():
    assert ruling({}, innocent=(0, 1)) == stalled(SUSPECT, THREADED, since=NOW - 14.0)
    assert ruling({}, innocent=(0, 1)) == stalled(SUSPECT, THREADED, on_cpu=0, since=NOW - 14.0)


def test_nor_for_one_beside_a_loop_that_had_nothing_to_do():
    assert ruling({}, innocent=(0, 1)) == stalled(*TWO, since=NOW - 40.0)


def test_the_job_that_it_was_settling_answers_whoever_else_is_there():
    assert ruling({0: Charge.STALLED}, innocent=(1,)) == stalled(*TWO, settling=0, on_cpu=1, since=NOW - 40.0)


def test_and_so_does_the_one_that_it_was_reading():
    reading = LaneAtDeath(1, Stage.READING)

    assert ruling({1: Charge.STALLED}, innocent=(0,)) == stalled(LaneAtDeath(0), reading, since=NOW - 1.0)


def test_of_a_job_that_is_done_nobody_answers_for_its_settlement():
    done = LaneAtDeath(1, Stage.DONE)

    assert ruling({}, innocent=(0,)) == stalled(LaneAtDeath(0), done, settling=1, since=NOW - 1.0)


def test_a_step_that_lasted_as_long_as_the_silence_has_kept_it_from_going_on():
    assert ruling({1: Charge.BLOCKED}, innocent=(0,)) == stalled(*TWO, on_cpu=1, since=NOW - 16.0)


def test_a_thread_may_have_kept_the_interpreters_lock_from_both():
    assert ruling({}, suspects=(1,), innocent=(0,)) == stalled(LaneAtDeath(0), THREADED, since=NOW - 16.0)
    assert ruling({}, suspects=(0, 1)) == stalled(LaneAtDeath(0), THREADED, on_cpu=0, since=NOW - 16.0)


# On the board


@each(
    "found",
    [
        ruling({}),
        ruling({7: Charge.LATE, 0: Charge.STALLED}, suspects=(1, 2), innocent=(3,)),
        *[ruling({0: charge}) for charge in Charge],
    ],
)
def test_a_ruling_comes_back_from_the_board_as_it_was_made(found):
    assert found == Culprits.of(found.numbers)


def test_a_number_that_no_steward_writes_proves_nothing():
    assert ruling({}, suspects=(0, 1, 2)) == Culprits.of({0: 7, 1: -1, 2: 2**40})
