"""Show where running jobs are in their code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, NamedTuple

import click

from queuepool.board.board import Board, Role, Slot
from queuepool.board.held_jobs import Running
from queuepool.board.live_stack import Frame, frames_in, stack_of, tasks_of
from queuepool.board.runtime_dir import boards_in
from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, PLACE, TEXT, Where, located
from queuepool.errors import NoStack, StoreError
from queuepool.jobs.client import Queue
from queuepool.log.tracebacks import OURS, users_part
from queuepool.search.running import pools_of
from queuepool.unix.exit_codes import FAILED, OK


class _Asked(NamedTuple):
    """A worker that is asked, and what it runs; ``job`` is ``None`` if it runs none."""

    pool: str
    board: Board
    slot: Slot
    job: Running | None
    #: the turn of its lane
    turn: int = 0

    @property
    def place(self) -> tuple[int, ...]:
        """The key that identifies this attempt."""
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


@click.command()
@located(*PLACE)
@click.argument("subject", metavar="ID|PID|POOL", type=TEXT)
@JSON
def stack(where: Where, subject: str, as_json: bool) -> int:
    """Show where a job is in its code, while it runs

    Of one job, of the worker with this pid, or of all busy workers of a pool. Works in C code too; the job goes on.
    """
    rows, is_whole = list[dict[str, Any]](), True
    with boards_in(runtime_of(where, pool).path for pool in where.pools()) as boards:
        found = list(_asked(where, boards, subject))
        for one in found:
            try:
                rows.append(_row(one))
            except NoStack as error:
                output.complain(str(error))
                is_whole = False
    if not found:
        output.complain(_nowhere(where, subject))
    if as_json:
        output.documents(rows)
    else:
        for row in rows:
            _show(row)
    return OK if found and is_whole else FAILED


def _asked(where: Where, boards: Sequence[Board], subject: str) -> Iterator[_Asked]:
    """The workers that are meant: those of a pool by its name, one by its pid, or those that run a job by its id."""
    names = {runtime_of(where, pool).path: pool.name for pool in where.pools()}
    for board in boards:
        pool = names.get(board.path.parent, "")
        for slot in board.of(Role.WORKER):
            if slot.dead or not board.has_living(slot):
                continue
            jobs = slot.lanes_running() if slot.lanes else [(job, 0) for job in slot.running()]
            is_meant = subject.isdecimal() and slot.pid == int(subject)
            if is_meant and not jobs:
                yield _Asked(pool, board, slot, None)
            meant = ((job, turn) for job, turn in jobs if is_meant or subject in (job.id, pool))
            yield from (_Asked(pool, board, slot, job, turn) for job, turn in meant)


def _row(one: _Asked) -> dict[str, Any]:
    """Which worker, which job, and its stack. Raises ``NoStack``, also if the job has ended meanwhile."""
    slot, job, place = one.slot, one.job, one.place
    # First the thread's: it answers in C code, too, and is at the job if that answers for no task.
    text = stack_of(one.board, slot) if one.has_cpu else ""
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


def _show(row: dict[str, Any]) -> None:
    what = f"job {row['job']} {row['id']}, attempt {row['attempt']}, since {row['since']}" if row["job"] else "no job"
    output.say(f"worker {row['worker']} of pool {row['pool']} (pid {row['pid']}): {what}")
    for what, frames in [("", row["stack"]), *(("  a task that waits:", task) for task in row["tasks"])]:
        if what and frames:
            output.say(what)
        for frame in frames:
            output.say(f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}')


def _nowhere(where: Where, subject: str) -> str:
    """Why there is nothing to show: a pool of another host may run the job."""
    for connection in where.connections():
        with closing(Queue(connection, by_hand=True)) as queue, suppress(StoreError):
            for shown in pools_of((), queue.stores):
                if any(job.id == subject for process in shown.processes for job in process.jobs):
                    return f"job {subject} runs on host {shown.host}, in pool {shown.pool}: ask there"
    return f"nothing runs here under the id, pid or pool {subject}"
