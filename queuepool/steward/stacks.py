"""Where the running jobs of a pool are in their code: for a person on this host, or as the answer to one elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from queuepool.board.board import Board, Role, Slot
from queuepool.board.held_jobs import Running
from queuepool.board.live_stack import Frame, frames_in, stack_of, tasks_of
from queuepool.board.status import iso
from queuepool.errors import NoStack
from queuepool.log.tracebacks import OURS, users_part
from queuepool.unix import file_lock

#: seconds within which the workers of a pool are asked for an answer, and each of them
_ALL_WITHIN, _EACH_WITHIN = 4.0, 1.0
#: seconds that this may take longer than what a master is told
STACKS_TAKE = 2.0
#: most bytes of a line that says what was cut
_LAST_LINE = 100
_ANOTHER = "somebody else is asking at this moment: ask again"


class AskedWorker(NamedTuple):
    """A worker that is asked, and what it runs; ``job`` is ``None`` if it runs none."""

    pool: str
    board: Board
    slot: Slot
    job: Running | None
    #: the turn of its lane
    turn: int = 0

    @property
    def place(self) -> tuple[int, ...]:
        """What tells this attempt from all others."""
        slot = self.slot
        if slot.lanes and self.job:
            return slot.incarnation, int(slot.lanes.runs(self.job.number, self.turn))
        return slot.incarnation, slot.hand_number, slot.current_index

    @property
    def lane(self) -> int | None:
        return self.job.number if self.job and self.slot.lanes else None

    @property
    def has_cpu(self) -> bool:
        """Whether the thread that runs jobs is at this one."""
        return self.slot.lanes is None or self.slot.lanes.on_cpu == self.lane


def asked_on(board: Board, pool: str, subject: str) -> Iterator[AskedWorker]:
    """The workers that are meant: those of a pool by its name, one by its pid, or those that run a job by its id."""
    for slot in board.of(Role.WORKER):
        if slot.dead or not board.has_living(slot):
            continue
        jobs = slot.lanes_running() if slot.lanes else [(job, 0) for job in slot.running()]
        is_meant = subject == str(slot.pid)
        if is_meant and not jobs:
            yield AskedWorker(pool, board, slot, None)
        meant = ((job, turn) for job, turn in jobs if is_meant or subject in (job.id, pool))
        yield from (AskedWorker(pool, board, slot, job, turn) for job, turn in meant)


def stack_row(one: AskedWorker, timeout: float = 2.0) -> dict[str, Any]:
    """Which worker, which job, and its stack. Raises ``NoStack``, also if the job has ended meanwhile."""
    slot, job, place = one.slot, one.job, one.place
    # First the thread's: it answers in C code, too, and is at the job if that answers for no task.
    text = stack_of(one.board, slot, timeout) if one.has_cpu else ""
    tasks = tasks_of(one.board, slot, one.lane)
    if one.place != place:
        raise NoStack(f"worker {slot.number} (pid {slot.pid}) has gone on to another job meanwhile")
    facts: dict[str, Any] = {"pool": one.pool, "worker": slot.number, "pid": slot.pid}
    about: dict[str, Any] = {"job": None, "id": None, "attempt": None, "since": None}
    if job:
        about = {"job": job.job, "id": job.id, "attempt": job.attempt, "since": iso(job.since)}
    shown = {"stack": _dicts(frames_in(users_part(f"\n{text}"))), "tasks": [_dicts(task) for task in tasks or ()]}
    return facts | about | shown


def _dicts(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    return [frame._asdict() for frame in frames if not frame.file.startswith(OURS)]


def stack_lines(row: dict[str, Any]) -> Iterator[str]:
    """A row for a person."""
    what = f"job {row['job']} {row['id']}, attempt {row['attempt']}, since {row['since']}" if row["job"] else "no job"
    yield f"worker {row['worker']} of pool {row['pool']} (pid {row['pid']}): {what}"
    for what, frames in [("", row["stack"]), *(("  a task that waits:", task) for task in row["tasks"])]:
        if what and frames:
            yield what
        for frame in frames:
            yield f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}'


def stacks_text(board: Board, pool: str, subject: str, room: int) -> str:
    """The lines of all workers that are meant, as in ``few_lines``. Waits up to 6 s; answers one caller at a time."""
    try:
        with file_lock.held(board.path.with_name(f"{board.path.name}.asked")) as is_ours:
            lines = list(_lines(board, pool, subject)) if is_ours else [_ANOTHER]
    except OSError as error:
        return f"it cannot be asked: {error.strerror}"
    return few_lines(lines or [f"nothing runs here any more under {subject}"], room)


def _lines(board: Board, pool: str, subject: str) -> Iterator[str]:
    until, found = time.monotonic() + _ALL_WITHIN, list(asked_on(board, pool, subject))
    for count, one in enumerate(found):
        if time.monotonic() >= until:
            yield f"{len(found) - count} more were not asked, as the others took long: ask for one of them"
            return
        try:
            yield from stack_lines(stack_row(one, _EACH_WITHIN))
        except NoStack as error:
            yield str(error)


def few_lines(lines: Iterable[str], room: int) -> str:
    """As many of the lines as have room, in bytes of their JSON; the last one says how many were cut."""
    kept, cut = list[str](), 0
    room -= _LAST_LINE
    for line in lines:
        room -= len(json.dumps(f"{line}\n"))
        if room >= 0:
            kept.append(line)
        else:
            cut += 1
    if cut:
        kept.append(f"{cut} line{'' if cut == 1 else 's'} cut: ask for one job by its id, or on that host")
    return "\n".join(kept)
