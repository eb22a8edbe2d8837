"""The schedules that jobs declare by ``@job(schedule=…)``: workers write them beside the board, for the steward.

Each generation of workers has its own file, which is written once. The newest generation that has become ready
counts: a schedule that a deploy removes is gone with the first worker of the new code, and a worker that still boots
with the old code does not bring it back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuepool.board.board import Board, Role
from queuepool.board.boot_report import replace_text, text_in
from queuepool.board.states import State

_AT_WORK = (State.IDLE, State.BUSY, State.PAUSED, State.DRAINING)


class JobSchedule(NamedTuple):
    """A job with the rule and queue that it declares; the schedule has the job's name."""

    job: str
    rule: str
    queue: str


def publish(board: Board, generation: int, schedules: Sequence[JobSchedule]) -> None:
    """Write the schedules of this generation, unless another worker has. Raises ``OSError``."""
    path = _file_of(board, generation)
    if not schedules or path.exists():
        return
    replace_text(path, json.dumps(schedules))


def published(board: Board) -> list[JobSchedule]:
    """The schedules of the newest generation at work; none if its jobs declare none."""
    workers = [slot.generation for slot in board.of(Role.WORKER) if slot.state in _AT_WORK and not slot.dead]
    text = text_in(_file_of(board, max(workers))) if workers else ""
    with suppress(ValueError, TypeError):  # overwritten by a job
        return [JobSchedule(*map(str, one)) for one in json.loads(text or "[]")]
    return []


def _file_of(board: Board, generation: int) -> Path:
    return board.path.with_name(f"{board.path.name}.schedules{generation}")
