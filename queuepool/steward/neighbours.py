"""The pools that serve queues of ours, on this host or others, and what each of them can take on: from their notices.

A notice is some seconds old, and may be of an older version, damaged, or written by anyone. Only a pool that scales
reads them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from queuepool.board.health import health_of
from queuepool.board.overview import PoolOverview, texts_in
from queuepool.board.record import DAMAGED
from queuepool.board.states import State
from queuepool.config.values import MAX_CONCURRENCY, MAX_WORKERS
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.steward.share import Bid, turn_at
from queuepool.stores.contract import NOTICE_LASTS
from queuepool.stores.control import instance_in, newest_of

#: seconds between two looks; and between the first ones, of which there are so many: hosts that are started at one time
#: would all grow for what has gathered meanwhile
_PERIOD, _FIRST, _FIRST_LOOKS = 5.0, 1.0, 5
#: after a look, the steward rests for this many times as long as it took; but for so many seconds at most, since what
#: is known lapses with the notices
_SHARE, _LONGEST = 20.0, 20.0
#: seconds for which a pool that could get no more workers is expected to get none: as soon as others take what it could
#: not, it wants no more, and says so; its part would come back at once, and go again
_REMEMBERED = 60.0
#: why a pool gets no more workers now, in its notice; and of these, what lasts
_HOLDS, _LASTING = frozenset(("memory", "boot", "silence")), frozenset(("memory", "boot"))
_STARTING = State.STARTING.name.lower()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another pool that takes jobs. ``weight`` and ``lanes`` are jobs at once, as in a ``Bid``."""

    owner: str
    #: those that it serves and that are not paused
    queues: frozenset[str]
    weight: int
    lanes: int
    grows: bool
    #: jobs that it runs, by queue
    running: Mapping[str, float]
    #: when it counts as gone, unless it has published again, by the store's clock
    until: float

    def bid(self, queue: str) -> Bid:
        running = sum(self.running.values())
        here = self.running.get(queue, 0.0)
        return Bid(self.owner, self.weight, self.lanes - running + here, self.lanes - running, self.grows)


class KnowNeighbours:
    """Reads the notices every few seconds; it comes before the wish, which asks for the ``bids``.

    ``read`` returns the notices of all pools, and ``clock`` the store's time. Where they may not be read, each pool
    scales as if it were alone.
    """

    def __init__(
        self,
        instance: str,
        queues: Sequence[str],
        read: Callable[[], Iterable[Mapping[str, Any]]],
        clock: Callable[[], float],
    ) -> None:
        self._instance = instance
        self._queues = frozenset(queues)
        self._read = read
        self._clock = clock
        self._known: list[Neighbour] = []
        self._looks = 0
        #: the store's clock minus the monotonic one
        self._offset = 0.0
        #: when a pool could get no more workers the last time (monotonic), by its name
        self._held: dict[str, float] = {}

    def run(self, now: float) -> float:
        began = time.monotonic()
        try:
            notices, at = list(self._read()), self._clock()
        except StoreError as error:
            if isinstance(error, StoreDown) and not isinstance(error, StoreDenied):
                raise
            return _PERIOD  # what is known lapses by itself
        self._offset = at - now - (time.monotonic() - began)
        self._held = {owner: since for owner, since in self._held.items() if now < since + _REMEMBERED}
        found = (self._neighbour(notice, now) for notice in newest_of(notices).values() if self._is_other(notice))
        self._known = [one for one in found if one]
        self._looks += 1
        period = _FIRST if self._looks < _FIRST_LOOKS else _PERIOD
        return min(max(period, _SHARE * (time.monotonic() - began)), _LONGEST)

    def bids(self, queue: str, now: float) -> tuple[Bid, ...]:
        """Those of the other pools to this queue, at ``now`` (monotonic)."""
        at = now + self._offset
        return tuple(one.bid(queue) for one in self._known if queue in one.queues and at < one.until)

    def turn(self, now: float) -> float:
        """The turn at ``now`` (monotonic): by the store's clock, as hosts may disagree on the time."""
        return turn_at(now + self._offset)

    def _is_other(self, notice: Mapping[str, Any]) -> bool:
        """Whether it is another pool's, of a queue that we serve. One that lists no queues is of an old version."""
        queues = notice.get("queues")
        is_shared = isinstance(queues, list) and any(isinstance(one, str) and one in self._queues for one in queues)
        return is_shared and instance_in(notice) != self._instance

    def _neighbour(self, notice: Mapping[str, Any], now: float) -> Neighbour | None:
        """The pool of this notice; ``None`` if it takes no jobs, or no pool has written that."""
        owner = _owner(notice)
        with suppress(*DAMAGED):
            pool = PoolOverview.from_json(notice)
            if pool.scaling and pool.scaling.held in _LASTING:
                self._held[owner] = now
            return _neighbour_in(notice, pool, is_held=owner in self._held)
        return None


def _neighbour_in(notice: Mapping[str, Any], pool: PoolOverview, *, is_held: bool) -> Neighbour | None:
    """As ``_neighbour``; ``is_held``: whether it cannot get more workers. Raises one of ``DAMAGED``."""
    scaling, each = pool.scaling, _lanes_of_a_worker(notice, pool)
    scales = scaling is not None and scaling.most > 0 and not scaling.pinned
    present = _count(pool.workers, MAX_WORKERS)
    most = max(_count(scaling.most, MAX_WORKERS), present) if scaling and scales else present
    grows = scales and most > present and not (is_held or (scaling and scaling.held in _HOLDS))
    if not (most and _takes_jobs(pool)):
        return None
    queues = frozenset(texts_in(notice["queues"])) - frozenset(pool.paused)
    lanes, until = (most if grows else present) * each, notice["at"] + NOTICE_LASTS
    return Neighbour(_owner(notice), queues, most * each, lanes, grows, _running(notice, pool), until)


def _takes_jobs(pool: PoolOverview) -> bool:
    """Whether it takes jobs, or will in a moment: all hosts may just have been started, with much to do."""
    health = health_of(pool)
    return health.takes_jobs or health.state == _STARTING


def _owner(notice: Mapping[str, Any]) -> str:
    return instance_in(notice) or f"{notice['host']}:{notice['pool']}"


def _lanes_of_a_worker(notice: Mapping[str, Any], pool: PoolOverview) -> int:
    """Jobs that each worker runs at once; an older version does not say it, but shows what runs."""
    each = notice.get("concurrency")
    if isinstance(each, int) and each >= 1:
        return _count(each, MAX_CONCURRENCY)
    return max((len(process.jobs) for process in pool.processes), default=0) or 1


def _running(notice: Mapping[str, Any], pool: PoolOverview) -> Mapping[str, float]:
    """The jobs that it runs by queue; those for which its notice had no room are like the others."""
    listed = Counter(job.queue for process in pool.processes for job in process.jobs)
    left_out = notice.get("jobs_left_out")
    most = MAX_WORKERS * MAX_CONCURRENCY
    more = _count(left_out, most) / max(listed.total(), 1) if isinstance(left_out, int) else 0.0
    return {queue: jobs * (1 + more) for queue, jobs in listed.items()}


def _count(number: int, most: int) -> int:
    return min(max(number, 0), most)
