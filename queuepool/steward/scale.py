"""The steward's wish for more workers or fewer, once a second; the master decides what follows from it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, inf, isfinite

from queuepool.board.board import RUNS_JOBS, Board, Role, Slot, State
from queuepool.board.counts import PoolCounts, counts_of
from queuepool.board.record import as_count
from queuepool.config.settings import PoolSettings
from queuepool.events import PoolScaled
from queuepool.events.listeners import Listeners
from queuepool.steward.demand import QueueTotals, Scaler
from queuepool.steward.neighbours import KnowNeighbours
from queuepool.steward.wish import Aims, Wish

#: seconds between two wishes; what waits is measured as often
PERIOD = 1.0
#: after a wish, the steward rests for this many times as long as the wish took
_SHARE = 20.0
#: seconds after which what was measured no longer counts
_FRESH = 15.0
#: tolerance for a need just above a whole number
_TOLERANCE = 1e-6
#: the most workers that are said to be needed: a job can write anything into the totals
_MOST = 10**6


class WishForWorkers:
    """Writes how many workers the pool needs; it comes after what measures the queues, and the ``neighbours``."""

    def __init__(self, settings: PoolSettings, board: Board, listeners: Listeners, neighbours: KnowNeighbours) -> None:
        self._settings = settings
        self._board = board
        self._listeners = listeners
        self._neighbours = neighbours
        self._scaler = Scaler(settings.scale_down_after, settings.concurrency, board.name.instance)
        #: how many workers the pool had to have at the last run; ``None`` before the first
        self._target: int | None = None

    def run(self, now: float) -> float:
        began = time.monotonic()
        self._tell()
        counts = counts_of(self._board)
        fresh = {name: facts for name, facts in counts.queues.items() if facts.measured_at > time.time() - _FRESH}
        if fresh:
            self._write(self._wish(now, counts._replace(queues=fresh)), now)
        return max(PERIOD, _SHARE * (time.monotonic() - began))

    def _write(self, wish: Wish, now: float) -> None:
        header = self._board.header
        header.wish_why = wish.why
        header.wish = wish.workers
        header.needed, header.lately = _rounded(wish.need), _rounded(self._scaler.lately(now))
        header.wish_at = now  # last: the master trusts a wish by its time

    def _wish(self, now: float, counts: PoolCounts) -> Wish:
        header, target = self._board.header, as_count(self._board.header.target)
        workers = [slot for slot in self._board.of(Role.WORKER) if slot.pid and not slot.dead]
        if self._is_paused(workers):
            return Wish(target, "paused", inf)  # what waits shows nothing
        ready = len({slot.number for slot in workers if slot.state != State.STARTING and slot.number <= target})
        at_work = [slot for slot in workers if slot.lanes or slot.state in RUNS_JOBS]
        running = Counter(one.queue for slot in at_work for one in slot.running())
        fewest = as_count(header.fewest) or 1
        aims = Aims(fewest, max(as_count(header.most), fewest), self._settings.target_wait)
        totals = {
            name: replace(found, others=self._neighbours.bids(name, now))
            for name, found in _totals(counts, running).items()
        }
        return self._scaler.look(now, totals, target, max(target - ready, 0), aims, self._neighbours.turn(now))

    def _is_paused(self, workers: Sequence[Slot]) -> bool:
        """Whether no worker takes jobs because of a signal, maintenance mode, or a listener."""
        header = self._board.header
        if State(header.state) is State.PAUSED or (header.down and not self._settings.force):
            return True
        return {slot.state for slot in workers} == {State.PAUSED}

    def _tell(self) -> None:
        """Tell the listeners how the master has changed the number; the master logs it itself."""
        before, self._target = self._target, as_count(self._board.header.target)
        if before not in (None, self._target):
            why = "by order" if self._board.header.pinned else self._board.header.wish_why
            self._listeners.emit(PoolScaled(before or 0, self._target, why))


def _rounded(need: float) -> int:
    """How many workers that are; 0 if it is not known."""
    return min(max(ceil(need - _TOLERANCE), 1), _MOST) if isfinite(need) else 0


def _totals(counts: PoolCounts, running: Mapping[str, int]) -> dict[str, QueueTotals]:
    """The totals of each queue that is not paused."""
    ended, run = Counter[str](), defaultdict[str, float](float)
    for (queue, _), jobs in counts.jobs.items():
        ended[queue] += jobs.ended
        run[queue] += jobs.run.total
    return {
        name: QueueTotals(
            facts.ready, facts.reserved, running[name], facts.oldest, ended[name], run[name], facts.measured_at
        )
        for name, facts in counts.queues.items()
        if not facts.paused
    }
