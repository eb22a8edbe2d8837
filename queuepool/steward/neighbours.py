"""The pools that serve queues of ours, on this host or others, and what each of them can take on: from their notices.

A notice is some seconds old, and may be of an older version, or damaged. Only a pool that scales reads them.
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
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.steward.share import Bid
from queuepool.stores.contract import NOTICE_LASTS
from queuepool.stores.control import instance_in, newest_of

#: seconds between two looks; after one, the steward rests for this many times as long as it took
_PERIOD, _SHARE = 5.0, 20.0
#: seconds for which a pool that could get no more workers is expected to get none: as soon as others take what it could
#: not, it wants no more, and says so; its part would come back at once, and go again
_REMEMBERED = 60.0
#: why a pool gets no more workers now, in its notice; and of these, what lasts
_HOLDS, _LASTING = frozenset(("memory", "boot", "silence")), frozenset(("memory", "boot"))
#: the most of anything that a notice may say
_MOST = 10**6


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
    #: monotonic: when it counts as gone, unless it has published again
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
        self._held = {owner: since for owner, since in self._held.items() if now < since + _REMEMBERED}
        found = (self._neighbour(notice, now, at) for notice in newest_of(notices).values() if self._is_other(notice))
        self._known = [one for one in found if one]
        return max(_PERIOD, _SHARE * (time.monotonic() - began))

    def bids(self, queue: str, now: float) -> tuple[Bid, ...]:
        """Those of the other pools to this queue, at ``now`` (monotonic)."""
        return tuple(one.bid(queue) for one in self._known if queue in one.queues and now < one.until)

    def _is_other(self, notice: Mapping[str, Any]) -> bool:
        """Whether it is another pool's, of a queue that we serve. One that lists no queues is of an old version."""
        queues = notice.get("queues")
        is_shared = isinstance(queues, list) and any(isinstance(one, str) and one in self._queues for one in queues)
        return is_shared and instance_in(notice) != self._instance

    def _neighbour(self, notice: Mapping[str, Any], now: float, at: float) -> Neighbour | None:
        until, owner = now + NOTICE_LASTS - max(at - notice["at"], 0.0), _owner(notice)
        with suppress(*DAMAGED):
            pool = PoolOverview.from_json(notice)
            if pool.scaling and pool.scaling.held in _LASTING:
                self._held[owner] = now
            return neighbour_in(notice, pool, until, is_held=owner in self._held)
        return None


def neighbour_in(notice: Mapping[str, Any], pool: PoolOverview, until: float, *, is_held: bool) -> Neighbour | None:
    """The pool of this notice, whose overview is ``pool``; ``None`` if it takes no jobs.

    ``is_held``: whether it cannot get more workers. Raises one of ``DAMAGED`` for what no pool has written.
    """
    scaling, each = pool.scaling, _lanes_of_a_worker(notice, pool)
    scales = scaling is not None and scaling.most > 0 and not scaling.pinned
    present = _count(pool.workers)
    most = max(_count(scaling.most), present) if scaling and scales else present
    grows = scales and most > present and not (is_held or (scaling and scaling.held in _HOLDS))
    if not (health_of(pool).takes_jobs and most):
        return None
    queues = frozenset(texts_in(notice["queues"])) - frozenset(pool.paused)
    lanes = (most if grows else present) * each
    return Neighbour(_owner(notice), queues, most * each, lanes, grows, _running(notice, pool), until)


def _owner(notice: Mapping[str, Any]) -> str:
    return instance_in(notice) or f"{notice['host']}:{notice['pool']}"


def _lanes_of_a_worker(notice: Mapping[str, Any], pool: PoolOverview) -> int:
    """Jobs that each worker runs at once; an older version does not say it, but shows what runs."""
    each = notice.get("concurrency")
    if isinstance(each, int) and each >= 1:
        return _count(each)
    return max((len(process.jobs) for process in pool.processes), default=0) or 1


def _running(notice: Mapping[str, Any], pool: PoolOverview) -> Mapping[str, float]:
    """The jobs that it runs by queue; those for which its notice had no room are like the others."""
    listed = Counter(job.queue for process in pool.processes for job in process.jobs)
    left_out = notice.get("jobs_left_out")
    more = _count(left_out) / max(listed.total(), 1) if isinstance(left_out, int) else 0.0
    return {queue: jobs * (1 + more) for queue, jobs in listed.items()}


def _count(number: int) -> int:
    return min(max(number, 0), _MOST)
