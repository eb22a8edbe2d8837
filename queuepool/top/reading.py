"""One look at a local pool: what its board shows at one moment; and how fast that changes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from queuepool.board.board import Board, BoardName
from queuepool.board.counts import Histogram, JobCounts, PoolCounts, counts_of
from queuepool.board.fields import Totals
from queuepool.board.health import NOT_RUNNING, Health, health_of, health_of_none
from queuepool.board.record import SharedFile
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import LocalPool, board_of, local_pool
from queuepool.errors import ConfigError, NotRunning

T = TypeVar("T")
V = TypeVar("V")
K = TypeVar("K")
#: seconds over which rates and percentiles are taken, and between the readings that are kept for them
RATES, PERCENTILES = 10.0, 60.0
_KEPT_OF_EACH = 10
#: most queues, and most pairs of queue and job, that are kept: a board may hold anything
_MOST_NAMES = 5000


@dataclass(frozen=True, slots=True)
class PoolReading:
    """``local`` is what was seen last; ``None``: nothing yet, as the pool does not run.

    ``seen_at``: when that was, in Unix seconds; 0.0 = never.
    """

    pool: str
    seen_at: float
    local: LocalPool | None
    counts: PoolCounts
    pace: Pace
    #: why the pool could not be read; what was seen is old then
    problem: str = ""
    runs: bool = True

    @property
    def running(self) -> LocalPool | None:
        """The pool, if it runs as far as is known."""
        return self.local if self.runs else None

    @property
    def state(self) -> str:
        return self.running.overview.state if self.running else NOT_RUNNING

    @property
    def health(self) -> Health:
        return health_of(self.running.overview) if self.running else health_of_none()


class PoolReader:
    """Reads one pool again and again; a later master with its name is another pool."""

    def __init__(self, runtime: RuntimeDir) -> None:
        self.name = runtime.name
        self._runtime = runtime
        self._meter = PaceMeter()
        self._master = BoardName(0, 0)

    def next(self, before: PoolReading | None) -> PoolReading:
        """A reading; where the pool cannot be read, the last facts with the problem.

        Raises ``ConfigError`` and ``OSError`` if there is none before.
        """
        try:
            return self._look()
        except NotRunning as error:
            last = before or PoolReading(self.name, 0.0, None, PoolCounts(), Pace())
            return replace(last, runs=False, pace=Pace(), problem=str(error))
        except (ConfigError, OSError) as error:
            if before is None:
                raise
            return replace(before, pace=Pace(), problem=str(error))

    def _look(self) -> PoolReading:
        board = board_of(self._runtime)
        try:
            return self._read(board)
        finally:
            if isinstance(board.memory, SharedFile):
                board.memory.close()  # else there would be two more open files each second

    def _read(self, board: Board) -> PoolReading:
        if board.name != self._master:
            self._master, self._meter = board.name, PaceMeter()
        local, counts = local_pool(self.name, self._runtime, board), counts_of(board)
        totals = Totals(local.overview.done, local.overview.failed, local.overview.released)
        pace = self._meter.pace(time.monotonic(), totals, counts)
        return PoolReading(self.name, time.time(), local, counts, pace)


class Window(Generic[T]):
    """The readings of the last ``span`` seconds, ten of them at most."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._kept: deque[tuple[float, T]] = deque()

    def add(self, now: float, value: T) -> None:
        """Keep it, unless the one before is too young; ``now`` is monotonic."""
        if not self._kept or now - self._kept[-1][0] >= self._span / _KEPT_OF_EACH:
            self._kept.append((now, value))
        while len(self._kept) > 1 and now - self._kept[1][0] >= self._span:
            self._kept.popleft()

    def earliest(self, now: float) -> tuple[float, T] | None:
        """The seconds since the first reading, and that; ``None`` before there is a second one."""
        if not self._kept or now <= self._kept[0][0]:
            return None
        since, value = self._kept[0]
        return now - since, value


class SeenReady(NamedTuple):
    """How many jobs are ready in a queue, when that was measured, and whether there may be more."""

    ready: int
    measured_at: float
    is_at_least: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """``None`` or missing = unknown: there is no second reading yet, or the pool does not count.

    ``rates``: jobs a second. ``growth``: ready jobs a second, by queue. ``recent``: what has ended in the last minute.
    """

    rates: tuple[float, float, float] | None = None
    growth: Mapping[str, float] | None = None
    recent: Mapping[tuple[str, str], JobCounts] | None = None

    def waits(self) -> dict[str, Histogram]:
        """The waits of first attempts in the last minute, by queue."""
        found: dict[str, Histogram] = {}
        for (queue, _), counts in (self.recent or {}).items():
            found[queue] = found[queue].plus(counts.wait) if queue in found else counts.wait
        return found


class PaceMeter:
    """Remembers the readings of one pool, until another master has its name."""

    def __init__(self) -> None:
        self._totals: Window[Totals] = Window(RATES)
        self._sizes: Window[dict[str, SeenReady]] = Window(PERCENTILES)
        self._counts: Window[Mapping[tuple[str, str], JobCounts]] = Window(PERCENTILES)

    def pace(self, now: float, totals: Totals, counts: PoolCounts) -> Pace:
        """The pace at this reading, which is remembered; ``now`` is monotonic."""
        queues = _most(counts.queues)
        sizes = {name: SeenReady(one.ready, one.measured_at, one.is_at_least) for name, one in queues.items()}
        jobs = _most(counts.jobs)
        self._totals.add(now, totals)
        self._sizes.add(now, sizes)
        self._counts.add(now, jobs)
        return Pace(self._rates(now, totals), self._growth(now, sizes), self._recent(now, jobs))

    def _rates(self, now: float, totals: Totals) -> tuple[float, float, float] | None:
        if (found := self._totals.earliest(now)) is None:
            return None
        seconds, before = found
        done, failed, released = (max(new - old, 0) / seconds for new, old in zip(totals, before, strict=True))
        return done, failed, released

    def _growth(self, now: float, sizes: Mapping[str, SeenReady]) -> dict[str, float]:
        _, before = self._sizes.earliest(now) or (0.0, {})
        return {
            name: (new.ready - old.ready) / seconds
            for name, new in sizes.items()
            if (old := before.get(name))
            and (seconds := new.measured_at - old.measured_at) > 0
            and not (new.is_at_least or old.is_at_least)
        }

    def _recent(self, now: float, jobs: Mapping[tuple[str, str], JobCounts]) -> dict[tuple[str, str], JobCounts] | None:
        if (found := self._counts.earliest(now)) is None:
            return None
        _, before = found
        return {key: new.since(before.get(key)) for key, new in jobs.items()}


def _most(found: Mapping[K, V]) -> dict[K, V]:
    return dict(list(found.items())[:_MOST_NAMES])
