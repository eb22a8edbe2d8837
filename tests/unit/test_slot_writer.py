"""A worker's slot tells the master and the steward about its job."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# In a process of its own, as its alarm is the process's.
_BEGIN = """
import sys, time
from pathlib import Path
from queuepool.board.board import Board, Role
from queuepool.board.board import overdue
from queuepool.worker.slot_writer import SlotWriter
from queuepool.payload.envelope import decode
from queuepool.worker.plan import Plans
from queuepool.jobs.registry import REGISTRY
from queuepool.config.settings import PoolSettings
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.payload.lease import Lease

receipt = b'{"uuid":"a","id":"a","job":"do","data":[],"attempts":1}'
board = Board.create(Path(sys.argv[1]) / "board", capacity=1)
slot = board.slots[0]
slot.begin(Role.WORKER, 1, 1)
slot_writer = SlotWriter(slot, "default", Alarm(board.new_trace(slot)), WorkerSignals(), stall_timeout=30.0)
"""
_WORKER = f"""{_BEGIN}
def killed():
    why = overdue(slot, time.monotonic() + 90.0, grace=1000.0)
    return why.name if why else "nobody"

slot_writer.batch.hold([Lease("default", receipt)], time.monotonic() + 90.0, time.monotonic())
payload = decode(receipt)
slot_writer.begins(payload, "default", Plans(PoolSettings(timeout=0.0), REGISTRY).of(payload), 0)
print(killed(), slot.hand.is_empty)
slot_writer.batch.ended()
print(killed(), slot.hand.is_empty)
"""

_SAYING = f"""{_BEGIN}
[before] = slot.shown()
slot_writer.progress(float(sys.argv[2]), "rows")
[after] = slot.shown()
print(before.progress)
print(after.progress, after.note)
"""

_ENDING = f"""{_BEGIN.replace("capacity=1", "capacity=1, lanes=2")}
import select
from queuepool.worker.lane_board import LaneSlotWriter

lanes = LaneSlotWriter(slot, "default", Alarm(board.new_trace(slot)), WorkerSignals(), stall_timeout=30.0, most=1)
lanes.end_at_once()
lanes.arm_at(0.0)
select.select([], [], [], 20.0)
"""


def said_by(program: str, *words: object) -> str:
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def test_a_running_jobs_lease_is_held_and_a_finished_ones_costs_nobody_a_life(tmp_path):
    said = said_by(_WORKER, tmp_path)

    # A release that was carried out unheard leaves no lease: that is no reason to kill who waits for its answer.
    assert "LEASE False\nnobody False\n" == said


@pytest.mark.by_turns("fraction")
@pytest.mark.parametrize("fraction", [0.0, 1 / 3, 0.1, 1.0])
def test_progress_is_shown_as_the_job_says_it(tmp_path, fraction):
    assert f"None\n{fraction} rows\n" == said_by(_SAYING, tmp_path, fraction)


def test_a_worker_that_is_to_end_at_once_ends_though_its_loop_sets_the_alarm_anew(tmp_path):
    ended = subprocess.run([sys.executable, "-c", _ENDING, str(tmp_path)], capture_output=True, timeout=30)

    assert (-signal.SIGALRM, b"") == (ended.returncode, ended.stdout)
