"""The meters of a pool agree with the ledger: each attempt counts once, and no number ever goes back (I25).

They are judged by pool, from its master's start to its end: the next master counts anew. What a worker has begun and
not written down, since it was killed before the job's first line, may be counted too, as lost: once for each worker
that died without a job that had begun and not ended.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from queuepool.board.board import Board
from queuepool.board.counts import PoolCounts, counts_of
from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings
    from tests.chaos.rig import Rig

#: seconds between two samples; seconds without a change after which all is counted; seconds that this may take
_EVERY, _STILL, _PATIENCE = 0.3, 2.5, 30.0
#: the job of those starts that do not say theirs
_TINY = "Chaos@run"
#: what follows a start, by the worker itself
_ENDS = ("finish", "ack", "release", "fail", "requeue", "stale")
#: errors of attempts that end before their job's first line
_UNSTARTED = ("TooManyAttempts", "NoTriesLeft", "JobExpired")


class Sampler:
    """Notes the meters of all pools from time to time."""

    def __init__(self) -> None:
        self._due = 0.0

    def sample(self, rig: Rig) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _EVERY
            for path, counts in _counts(rig):
                rig.ledger.write("meters", board=path.name, jobs=_by_job(counts))


def note_counts(rig: Rig, since: float) -> None:
    """The last meters of each living pool, once they stand still: dead workers are settled, and all is published.

    ``since`` then (Unix seconds) nothing was left to do. What a steward measured later it has published with all that
    was counted before; one that a busy machine holds up publishes nothing, and stands still as well.
    """
    end, still_since, found = time.monotonic() + _PATIENCE, time.monotonic(), _living(rig)
    while (now := time.monotonic()) < end and not (now >= still_since + _STILL and _are_later(found, since)):
        rig.rest(0.1)
        before, found = found, _living(rig)
        if {pid: counts.jobs for pid, counts in found.items()} != {pid: counts.jobs for pid, counts in before.items()}:
            still_since = time.monotonic()
    for pid, counts in found.items():
        if counts.jobs:
            rig.ledger.write("counted", master=pid, jobs=_by_job(counts))


def _are_later(found: dict[int, PoolCounts], since: float) -> bool:
    measured = [[queue.measured_at for queue in counts.queues.values()] for counts in found.values()]
    return all(max(times, default=0.0) > since for times in measured)


def _living(rig: Rig) -> dict[int, PoolCounts]:
    """The meters of the pools' present masters, by their pids."""
    masters = {pool.process.pid for pool in rig.pools if pool.process}
    by_pid = {int(path.name.removeprefix("board.").partition("-")[0]): counts for path, counts in _counts(rig)}
    return {pid: counts for pid, counts in by_pid.items() if pid in masters}


def _counts(rig: Rig) -> list[tuple[Path, PoolCounts]]:
    paths = [path for pool in rig.pools for path in pool.directory.glob("board.*") if path.name.count(".") == 1]
    return [(path, counts) for path in paths if (counts := _read(path))]


def _read(path: Path) -> PoolCounts | None:
    try:
        board = Board.open(path)
    except (OSError, ValueError):  # a fault's doing, or just removed
        return None
    try:
        return counts_of(board)
    finally:
        board.memory.close()


def _by_job(counts: PoolCounts) -> dict[str, list[int]]:
    """By queue and job: done, released, failed, given back, and then those that were lost, by reason."""
    return {f"{queue} {job}": list(row[:9]) for (queue, job), row in counts.jobs.items()}  # type: ignore[arg-type]


class Counted:
    """Judges at the end, when all starts are known."""

    EVENTS = ("worker", "death", "start", *_ENDS, "meters", "counted")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: by worker, counted from 1: in a long run a pid may come again
        self._master: dict[int, int] = {}
        #: by pid, the last worker that had it
        self._worker: dict[int, int] = {}
        #: by worker and job
        self._starts: Counter[tuple[int, str]] = Counter()
        self._unstarted: Counter[int] = Counter()
        self._dead: set[int] = set()
        #: workers with a job that has begun and not ended
        self._busy: set[int] = set()
        #: those that run several at once, whatever ends: beside it one may have begun and not written that down
        self._wide: set[int] = set()
        self._last: dict[str, dict[str, list[int]]] = {}
        self._final: list[Event] = []

    def read(self, event: Event) -> None:
        match event["f"]:
            case "worker":
                worker = self._worker[event["pid"]] = len(self._master) + 1
                self._master[worker] = event["master"]
                self._wide.update([worker] if event.get("lanes") else ())
            case "death":
                self._dead.add(self._of(event))
            case "start":
                self._starts[self._of(event), event.get("n", _TINY)] += 1
                self._busy.add(self._of(event))
            case "meters":
                self._grows(event["board"], event["jobs"])
            case "counted":
                self._final.append(event)
            case what:
                # A soft timeout may come before the handler's first line, if the machine is busy.
                unseen = what == "release" and self._of(event) not in self._busy
                self._unstarted[self._of(event)] += unseen or event.get("e") in _UNSTARTED
                self._busy.discard(self._of(event))

    def _of(self, event: Event) -> int:
        """The worker that wrote this; 0 for a process that is none of ours."""
        return self._worker.get(event["pid"], 0)

    def _grows(self, board: str, jobs: dict[str, list[int]]) -> None:
        for job, before in self._last.get(board, {}).items():
            now = jobs.get(job)
            if now is None and not jobs:
                continue  # it was damaged, and is about to be made anew
            if now is None or any(new < old for new, old in zip(now, before, strict=True)):
                self._findings.violated("I25 counted backwards", f"{board} {job}: {before}, then {now}")
        self._last[board] = jobs or self._last.get(board, {})

    def rule(self) -> None:
        for event in self._final:
            workers = self._workers_of(event["master"])
            starts: Counter[str] = Counter()
            for (worker, job), count in self._starts.items():
                starts[job] += count if worker in workers else 0
            unstarted = sum(self._unstarted[worker] for worker in workers)
            self._compare(event, starts, unstarted)
            self._compare_all(event, starts.total(), unstarted + len(workers & self._dead - (self._busy - self._wide)))

    def _workers_of(self, master: int) -> set[int]:
        return {worker for worker, its_master in self._master.items() if its_master == master}

    def _compare(self, event: Event, starts: Counter[str], unstarted: int) -> None:
        counted, lost = Counter[str](), Counter[str]()
        for key, row in event["jobs"].items():
            job = key.partition(" ")[2]
            counted[job] += sum(row[:4])
            lost[job] += sum(row[4:]) + row[3]
        for job in starts | counted:
            self._findings.count("attempts counted", counted[job])
            if not starts[job] <= counted[job] <= starts[job] + lost[job] + unstarted:
                words = f"master {event['master']} {job}: {counted[job]} of {starts[job]}, {lost[job]} lost"
                self._findings.violated("I25 not counted once", words)

    def _compare_all(self, event: Event, starts: int, unseen: int) -> None:
        counted = sum(sum(row[:4]) for row in event["jobs"].values())
        if counted > starts + unseen:
            words = (
                f"master {event['master']}: {counted} in all, of {starts} and at most {unseen} that no job wrote down"
            )
            self._findings.violated("I25 not counted once", words)
