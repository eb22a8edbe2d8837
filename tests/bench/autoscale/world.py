"""Simulated pools on one queue: jobs arrive, workers boot, take them in their order, and leave when they are told to.

Every second each pool shows its supervisor what it can see; what that decides is done a quarter of a second later,
which is how often a master looks. Times are seconds since the beginning.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from math import inf
from typing import NamedTuple, Protocol

#: seconds between two looks, and until what they lead to is done; and by which the looks of several pools are apart
_LOOK, _DELAY, _APART = 1.0, 0.25, 0.37


class Arrival(NamedTuple):
    """A job that comes at a time and takes so long."""

    at: float
    takes: float


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to see at one moment: jobs ready and running, the age of the next one, and totals so far."""

    now: float
    ready: int
    running: int
    oldest: float
    ended: int
    run: float
    #: workers that it is to have, those of them that boot, and those that finish a last job besides
    workers: int
    starting: int
    leaving: int
    #: jobs that other pools run
    elsewhere: int = 0


class Supervisor(Protocol):
    """Says how many workers there are to be."""

    def decide(self, sight: Sight) -> int: ...


@dataclass(slots=True, eq=False)
class _Worker:
    #: when it has booted, or has ended its last job
    free_since: float
    job: Arrival | None = None
    leaves: bool = False


@dataclass(slots=True)
class Outcome:
    """What became of a load. Waits are by arrival; ``sizes`` are the numbers of workers that were decided."""

    waits: list[tuple[float, float]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    worker_seconds: float = 0.0

    @property
    def turns(self) -> int:
        """How often it grew after it had shrunk, or shrank after it had grown."""
        steps = [after - before for before, after in pairwise(self.sizes) if after != before]
        return sum((one > 0) != (other > 0) for one, other in pairwise(steps))

    def wait(self, share: float, since: float = 0.0, until: float = inf) -> float:
        """The wait that such a share of the jobs did not exceed, of those that came in this time; 0.0 without one."""
        found = sorted(wait for at, wait in self.waits if since <= at < until)
        return found[min(int(share * len(found)), len(found) - 1)] if found else 0.0


class _Host:
    """One pool."""

    def __init__(self, supervisor: Supervisor, waits: list[tuple[float, float]]) -> None:
        self.supervisor = supervisor
        self.workers: list[_Worker] = []
        self.ended, self.run = 0, 0.0
        self.outcome = Outcome(waits)
        self.is_gone = False

    @property
    def staying(self) -> list[_Worker]:
        return [worker for worker in self.workers if not worker.leaves]

    @property
    def running(self) -> int:
        return sum(worker.job is not None for worker in self.workers)

    def idle(self, now: float) -> Iterator[_Worker]:
        """Those that take the next job."""
        for worker in self.workers:
            if worker.job is None and worker.free_since <= now and not worker.leaves:
                yield worker

    def longest_idle(self, now: float) -> float:
        """Since when the first of them has waited."""
        return min(worker.free_since for worker in self.idle(now))


class World:
    """One run, with a pool for each supervisor. The last of them may die, with its host, at ``dies_at``."""

    def __init__(
        self,
        load: Sequence[Arrival],
        *supervisors: Supervisor,
        begins_with: int,
        boot: float,
        dies_at: float = inf,
    ) -> None:
        waits: list[tuple[float, float]] = []
        self._boot = boot
        self._queue = deque[Arrival]()
        self._hosts = [_Host(supervisor, waits) for supervisor in supervisors]
        #: of each pool; the waits are those of all jobs
        self.outcomes = [host.outcome for host in self._hosts]
        self._numbers = count()
        #: what happens next: a time, a number that no other has, and what it is
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        for host in self._hosts:
            self._resize(host, begins_with, 0.0)
        for arrival in load:
            self._plan(arrival.at, partial(self._arrive, arrival))
        for number, host in enumerate(self._hosts):
            self._plan(_LOOK + number * _APART, partial(self._look, host))
        if dies_at < inf:
            self._plan(dies_at, partial(self._die, self._hosts[-1]))

    def run(self, until: float) -> Outcome:
        """The whole load, up to this time; returns the outcome of the first pool."""
        last = 0.0
        while self._events and self._events[0][0] <= until:
            now, _, happen = heapq.heappop(self._events)
            for host in self._hosts:
                host.outcome.worker_seconds += (now - last) * len(host.workers)
            last = now
            happen(now)
            self._hand_out(now)
        return self.outcomes[0]

    def _arrive(self, arrival: Arrival, now: float) -> None:
        self._queue.append(arrival)

    def _look(self, host: _Host, now: float) -> None:
        if host.is_gone:
            return
        self._plan(now + _DELAY, partial(self._resize, host, host.supervisor.decide(self._sight(host, now))))
        self._plan(now + _LOOK, partial(self._look, host))

    def _finish(self, host: _Host, worker: _Worker, job: Arrival, now: float) -> None:
        """Its job has ended."""
        if host.is_gone:
            return
        host.ended, host.run = host.ended + 1, host.run + job.takes
        worker.job, worker.free_since = None, now
        if worker.leaves:
            host.workers.remove(worker)

    def _die(self, host: _Host, now: float) -> None:
        """Its jobs are back in the queue at once, as if their leases had just ended."""
        self._queue.extendleft([worker.job for worker in host.workers if worker.job])
        host.workers.clear()
        host.is_gone = True

    def _hand_out(self, now: float) -> None:
        """To the pool with the worker that has waited longest, as a store serves those that block."""
        while self._queue:
            hosts = [host for host in self._hosts if next(host.idle(now), None)]
            if not hosts:
                return
            host = hosts[0] if len(hosts) == 1 else min(hosts, key=lambda host: host.longest_idle(now))
            worker = next(host.idle(now))
            worker.job = job = self._queue.popleft()
            host.outcome.waits.append((job.at, now - job.at))
            self._plan(now + job.takes, partial(self._finish, host, worker, job))

    def _resize(self, host: _Host, size: int, now: float) -> None:
        if host.is_gone:
            return
        host.outcome.sizes.append(size)
        staying = host.staying
        for worker in staying[size:]:
            worker.leaves = True
            if worker.job is None:
                host.workers.remove(worker)
        for _ in range(size - len(staying)):
            host.workers.append(_Worker(now + self._boot))
        if size > len(staying):
            self._plan(now + self._boot, self._boot_up)

    def _boot_up(self, now: float) -> None:
        """Workers have booted; they take jobs with what follows every event."""

    def _sight(self, host: _Host, now: float) -> Sight:
        staying = host.staying
        return Sight(
            now,
            ready=len(self._queue),
            running=host.running,
            oldest=now - self._queue[0].at if self._queue else 0.0,
            ended=host.ended,
            run=host.run,
            workers=len(staying),
            starting=sum(worker.free_since > now for worker in staying),
            leaving=len(host.workers) - len(staying),
            elsewhere=sum(other.running for other in self._hosts if other is not host),
        )

    def _plan(self, at: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), happen))
