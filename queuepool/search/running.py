"""What the pools of all hosts run: of this host by their boards, of any other by their last notices."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from queuepool.board.board import Role
from queuepool.board.fields import Slot
from queuepool.board.held_jobs import still_held
from queuepool.board.overview import JobRow, ProcessRow, processes_in
from queuepool.board.record import DAMAGED
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import board_of, overview
from queuepool.errors import ConfigError, NotRunning
from queuepool.payload.lease import Lease
from queuepool.stores.contract import ShelfJob
from queuepool.stores.control import instance_in
from queuepool.stores.factory import Stores


@dataclass(frozen=True, slots=True)
class ShownPool:
    """A pool and its processes, as its board or its last notice shows them; ``found`` says which, in words."""

    pool: str
    host: str
    found: str
    processes: Sequence[ProcessRow]

    @property
    def name(self) -> str:
        """For people: with the host, if that is known."""
        return f"{self.pool} on {self.host}" if self.host else self.pool


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that a worker runs."""

    shown: ShownPool
    process: ProcessRow
    job: JobRow


def pools_of(runtimes: Iterable[RuntimeDir], stores: Stores) -> Iterator[ShownPool]:
    """The pools of one connection: those of this host are never behind. Raises ``StoreError`` after these."""
    here = set[object]()
    for runtime in runtimes:
        with suppress(NotRunning, ConfigError, OSError):
            board = board_of(runtime)
            shown = overview(runtime.name, board)
            yield ShownPool(runtime.name, "", f"the board of pool {runtime.name}", shown.processes)
            here |= {board.name.instance, (socket.gethostname(), str(runtime.path))}
    for notice in stores.control.pools():
        place = notice["host"], str(notice.get("runtime_directory"))
        if (instance_in(notice) or place) not in here:
            with suppress(*DAMAGED):
                pool, host = notice["pool"], notice["host"]
                yield ShownPool(pool, host, f"the last notice of pool {pool} on {host}", processes_in(notice))


class Holder(NamedTuple):
    """The worker of a pool of this host that has reserved a job."""

    pool: str
    worker: int
    pid: int


def holder_of(runtimes: Iterable[RuntimeDir], job: ShelfJob) -> Holder | None:
    """Who has reserved this job, if it is a worker of one of these pools."""
    for runtime in runtimes:
        with suppress(NotRunning, ConfigError, OSError):
            for slot in board_of(runtime).of(Role.WORKER):
                if any(_is_on(lease, job) for lease in _held_by(slot)):
                    return Holder(runtime.name, slot.number, slot.pid)
    return None


def _held_by(slot: Slot) -> list[Lease]:
    try:
        return still_held(slot.held())
    except (ValueError, OSError):  # its worker was writing it
        return []


def _is_on(lease: Lease, job: ShelfJob) -> bool:
    same = lease.row.id == job.place if lease.row else lease.receipt == job.payload
    return same and lease.tag == job.tag


def running_jobs(pools: Iterable[ShownPool]) -> Mapping[str, RunningJob]:
    """What these run, by the jobs' ids."""
    return {
        job.id: RunningJob(pool, process, job) for pool in pools for process in pool.processes for job in process.jobs
    }
