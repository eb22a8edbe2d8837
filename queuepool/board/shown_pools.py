"""Pools and the jobs that they run, as their boards or their notices show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from queuepool.board.overview import JobRow, ProcessRow, processes_in
from queuepool.board.record import DAMAGED


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


def pools_in(notices: Iterable[Mapping[str, Any]]) -> Iterator[ShownPool]:
    """The pools that have published these, which may be seconds old; damaged ones are left out."""
    for notice in notices:
        with suppress(*DAMAGED):
            pool, host = notice["pool"], notice["host"]
            yield ShownPool(pool, host, f"the last notice of pool {pool} on {host}", processes_in(notice))


def running_jobs(pools: Iterable[ShownPool]) -> Mapping[str, RunningJob]:
    """What these run, by the jobs' ids."""
    return {
        job.id: RunningJob(pool, process, job) for pool in pools for process in pool.processes for job in process.jobs
    }
