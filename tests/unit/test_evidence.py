"""What a dead worker's board says of its death, where it ran several jobs at once."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from queuepool.board.board import Board, Killed, Role, Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE, THREAD
from queuepool.board.lane_writer import LaneJobs, LaneWriter
from queuepool.board.lanes import OwnEnd
from queuepool.payload.lease import Lease
from queuepool.steward.culprits import Cause, Charge, culprits_of
from queuepool.steward.death import evidence_of
from queuepool.unix.exit_codes import BROKEN

_THREAD = 'Thread 0x00007f0000000001 (most recent call first):\n  File "jobs.py", line 5 in run\n'
_CRASH = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0000000002 (most recent call first):\n"


@pytest.fixture
def slot(tmp_path: Path) -> Slot:
    """Of a worker with two jobs, of which one was told to end at its deadline, half a second ago."""
    board = Board.create(tmp_path / "board.1-1", capacity=1, lanes=2).mapped()
    slot = board.slots[0]
    slot.begin(Role.WORKER, 1, 1)
    writer, now = LaneWriter(slot.lanes), time.monotonic()
    for lane, deadline in enumerate((now - 0.5, now + 60.0)):
        writer.take(lane, Lease("default", b"{}", 1), now + 90.0)
        writer.begins(lane, LaneJobs("{}", "Job"), job_id=str(lane), attempt=1, since=time.time(), deadline=deadline)
    writer.told(0)
    writer.free_for(0.4)
    return slot


def test_a_crash_while_the_alarm_wrote_the_stacks_is_the_alarms(slot):
    status = int(signal.SIGSEGV)
    within = evidence_of(slot, -signal.SIGSEGV, status, f"{_THREAD}  File {_CRASH}", grace=0.5)

    assert Cause.DEADLINE == within.cause
    assert ({0: Charge.LATE}, {1}) == (culprits_of(within).charged, culprits_of(within).innocent)
    assert Cause.FAULT == evidence_of(slot, -signal.SIGSEGV, status, f"{_CRASH}{_THREAD}", grace=0.5).cause


def test_a_hang_of_the_main_thread_ended_when_the_master_killed_it_and_not_when_it_was_found(slot):
    assert slot.lanes
    now = time.monotonic()
    slot.killed, slot.deadline = Killed.STALLED, now - 20.0
    slot.lanes.reals[ON_CPU_SINCE] = now - 30.0

    found = evidence_of(slot, -signal.SIGKILL, int(signal.SIGKILL), "", grace=1.0)

    assert (Cause.STALL, None) == (found.cause, found.settling)
    assert 11.0 == pytest.approx(found.at - found.since)
    assert ({}, {0, 1}) == (culprits_of(found).charged, culprits_of(found).innocent)


def test_how_long_a_job_may_take_to_end_is_a_matter_of_the_pools_grace(slot):
    def charged(grace: float):
        return culprits_of(evidence_of(slot, -signal.SIGALRM, int(signal.SIGALRM), _THREAD, grace)).charged

    assert {0: Charge.LATE} == charged(0.5)
    assert {} == charged(2.0)


@pytest.mark.parametrize(("loop", "charged"), [(0x7F0000000002, {1: Charge.CRASHED}), (0x7F0000000001, {})])
def test_the_thread_that_crashed_is_the_one_that_is_said_to_be_current(slot, loop, charged):
    """Whichever is listed first. A thread that is not the loop's proves nothing against the step on the loop."""
    assert slot.lanes
    slot.lanes.wholes[THREAD], slot.lanes.wholes[ON_CPU] = loop, 2
    trace = f"Fatal Python error: Segmentation fault\n\n{_THREAD}\n{_CRASH.partition(chr(10) * 2)[2]}"

    found = culprits_of(evidence_of(slot, -signal.SIGSEGV, int(signal.SIGSEGV), trace, grace=0.5))
    assert charged == found.charged


def test_no_job_answers_for_a_task_of_no_jobs_that_blocks_the_loop_and_each_may_for_a_crash_in_one(slot):
    assert slot.lanes
    slot.lanes.mark(0, Stage.DONE)
    slot.lanes.wholes[ON_CPU] = slot.lanes.common + 1

    def ruled(signum: signal.Signals):
        return culprits_of(evidence_of(slot, -signum, int(signum), _THREAD, grace=0.5))

    assert ({}, {1}) == (ruled(signal.SIGALRM).charged, ruled(signal.SIGALRM).innocent)
    assert ({}, {1}) == (ruled(signal.SIGSEGV).charged, ruled(signal.SIGSEGV).suspects)


def test_the_job_on_the_cpu_has_not_done_what_the_main_thread_ends_the_worker_for(slot):
    """But an exit that the worker has not noted is the job's, and so is a crash on the way out."""
    assert slot.lanes
    slot.lanes.wholes[ON_CPU] = 2

    def ruled(code: int, status: int):
        return culprits_of(evidence_of(slot, code, status, "", grace=0.5))

    assert {1: Charge.CRASHED} == ruled(BROKEN, BROKEN << 8).charged
    LaneWriter(slot.lanes).ends(OwnEnd.FAILED)
    assert ({}, {0, 1}) == (ruled(BROKEN, BROKEN << 8).charged, ruled(BROKEN, BROKEN << 8).innocent)
    assert {1: Charge.CRASHED} == ruled(-signal.SIGSEGV, int(signal.SIGSEGV)).charged
    LaneWriter(slot.lanes).settles(0)
    assert {0: Charge.STALLED} == ruled(BROKEN, BROKEN << 8).charged
    LaneWriter(slot.lanes).ends(OwnEnd.BROKEN)
    assert ({}, {0, 1}) == (ruled(BROKEN, BROKEN << 8).charged, ruled(BROKEN, BROKEN << 8).suspects)
