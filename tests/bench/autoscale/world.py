"""A simulated pool: jobs arrive, workers boot, take them in their order, and leave after a job when they are told to.

Every second it shows what a supervisor can see; what that decides is done a quarter of a second later, which is how
often a master looks. Times are seconds since the beginning.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import NamedTuple, Protocol

#: seconds between two looks, and until what they lead to is done
_LOOK, _DELAY = 1.0, 0.25


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


class Supervisor(Protocol):
    """Says how many workers there are to be."""

    def decide(self, sight: Sight) -> int: ...


@dataclass(slots=True, eq=False)
class _Worker:
    ready_at: float
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

    def wait(self, share: float, since: float = 0.0, until: float = float("inf")) -> float:
        """The wait that such a share of the jobs did not exceed, of those that came in this time; 0.0 without one."""
        found = sorted(wait for at, wait in self.waits if since <= at < until)
        return found[min(int(share * len(found)), len(found) - 1)] if found else 0.0


class World:
    """One run."""

    def __init__(self, load: Sequence[Arrival], supervisor: Supervisor, *, begins_with: int, boot: float) -> None:
        self._supervisor = supervisor
        self._boot = boot
        self._queue = deque[Arrival]()
        self._workers: list[_Worker] = []
        self._ended, self._run = 0, 0.0
        self._outcome, self._numbers = Outcome(), count()
        #: what happens next: a time, a number that no other has, and a job, a worker, a size, or ``None`` for a look
        self._events: list[tuple[float, int, Arrival | _Worker | int | None]] = []
        self._resize(0.0, begins_with)
        for arrival in load:
            self._plan(arrival.at, arrival)
        self._plan(_LOOK, None)

    def run(self, until: float) -> Outcome:
        """The whole load, up to this time."""
        last = 0.0
        while self._events and self._events[0][0] <= until:
            now, _, what = heapq.heappop(self._events)
            self._outcome.worker_seconds += (now - last) * len(self._workers)
            last = now
            self._happen(now, what)
        return self._outcome

    def _happen(self, now: float, what: Arrival | _Worker | int | None) -> None:
        if what is None:
            self._plan(now + _DELAY, self._supervisor.decide(self._sight(now)))
            self._plan(now + _LOOK, None)
        elif isinstance(what, int):
            self._resize(now, what)
        elif isinstance(what, Arrival):
            self._queue.append(what)
        else:
            self._finish(what)
        self._hand_out(now)

    def _finish(self, worker: _Worker) -> None:
        """It has booted, or its job has ended."""
        if worker.job:
            self._ended, self._run = self._ended + 1, self._run + worker.job.takes
            worker.job = None
        if worker.leaves and worker in self._workers:
            self._workers.remove(worker)

    def _hand_out(self, now: float) -> None:
        for worker in self._workers:
            if not self._queue:
                return
            if worker.job is None and worker.ready_at <= now and not worker.leaves:
                worker.job = self._queue.popleft()
                self._outcome.waits.append((worker.job.at, now - worker.job.at))
                self._plan(now + worker.job.takes, worker)

    def _resize(self, now: float, size: int) -> None:
        self._outcome.sizes.append(size)
        staying = [worker for worker in self._workers if not worker.leaves]
        for worker in staying[size:]:
            worker.leaves = True
            if worker.job is None:
                self._workers.remove(worker)
        for _ in range(size - len(staying)):
            self._workers.append(worker := _Worker(now + self._boot))
            self._plan(worker.ready_at, worker)

    def _sight(self, now: float) -> Sight:
        staying = [worker for worker in self._workers if not worker.leaves]
        return Sight(
            now,
            ready=len(self._queue),
            running=sum(worker.job is not None for worker in self._workers),
            oldest=now - self._queue[0].at if self._queue else 0.0,
            ended=self._ended,
            run=self._run,
            workers=len(staying),
            starting=sum(worker.ready_at > now for worker in staying),
            leaving=len(self._workers) - len(staying),
        )

    def _plan(self, at: float, what: Arrival | _Worker | int | None) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), what))
