"""Arrival rates and run times, from totals that only grow; and the wish that follows from them.

No process, store or clock: the steward passes in its measurements, and a simulation passes in invented ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, sqrt

from queuepool.steward.share import Bid, part_of, share_of
from queuepool.steward.wish import Aims, PoolLoad, QueueLoad, Wish, wish_for

#: seconds over which arrivals are averaged; and over which they are averaged to detect a sudden change
_SLOW, _QUICK = 30.0, 3.0
#: standard deviations of a random arrival rate beyond which a change is believed at once
_CERTAIN = 4.0
#: jobs over which run times are averaged
_JOBS = 200.0
#: seconds without a look after which earlier needs no longer count
_LONGEST_GAP = 30.0


@dataclass(frozen=True, slots=True)
class QueueTotals:
    """A queue at one moment: jobs ready and reserved there, ``running`` here, and the age of the next one in seconds.

    ``ended`` attempts of this pool, and the seconds ``run`` that they took, since any moment in the past.
    """

    ready: int
    reserved: int
    running: int
    oldest: float
    ended: int
    run: float
    #: when the jobs there were counted; ``None`` = just now
    measured_at: float | None = None
    #: what other pools can take on of it
    others: tuple[Bid, ...] = ()


class Scaler:
    """One pool's wishes. ``scale_down_after``: seconds for which fewer workers must have been enough.

    ``owner``: the pool's instance, by which it and the other pools order their bids.
    """

    def __init__(self, scale_down_after: float, lanes: int = 1, owner: str = "") -> None:
        self._lanes = lanes
        self._owner = owner
        self._queues: dict[str, _Stream] = {}
        self._needs = RecentNeeds(scale_down_after)

    def look(
        self,
        now: float,
        queues: Mapping[str, QueueTotals],
        workers: int,
        starting: int,
        aims: Aims,
        turn: float = 0.0,
    ) -> Wish:
        """The wish at ``now`` (monotonic) of a pool that is to have ``workers``, of which some are ``starting``.

        ``turn``: whose turn it is to take a job that cannot be shared, as in ``share.whole``.
        """
        running = sum(found.running for found in queues.values())
        loads = [self._load(now, name, found, running, aims, turn) for name, found in queues.items()]
        load = PoolLoad(tuple(loads), workers, starting, self._lanes)
        wish = wish_for(load, aims, self._needs.highest(now))
        self._needs.note(now, wish.need)
        return wish

    def lately(self, now: float) -> float:
        """The highest need of late; infinity until that is known."""
        return self._needs.highest(now)

    def _load(self, now: float, name: str, found: QueueTotals, running: int, aims: Aims, turn: float) -> QueueLoad:
        """One queue's load, of what waits only our part. ``running``: jobs of all queues."""
        stream = self._queues.setdefault(name, _Stream())
        if not found.others:
            return stream.load(now, found)
        # Our own want of memory does not count here, or we would ask for no more, be told so, and ask again.
        most = aims.most * self._lanes
        own = Bid(self._owner, most, most - running + found.running, most - running)
        load = stream.load(now, found, share_of(own, found.others))
        part = part_of(own, found.others, found.ready, load.run_time, aims.target_wait, turn)
        return replace(load, waiting=part, elsewhere=found.ready - part)


class RecentNeeds:
    """What was needed in the last ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = self._last = -inf
        #: times with their needs, each of which is higher than all later ones
        self._peaks = deque[tuple[float, float]]()

    def note(self, now: float, need: float) -> None:
        """So many workers are needed at ``now``."""
        if now > self._last + _LONGEST_GAP:
            self._since = now
            self._peaks.clear()
        while self._peaks and self._peaks[-1][1] <= need:
            self._peaks.pop()
        self._peaks.append((now, need))
        self._last = now

    def highest(self, now: float) -> float:
        """The highest of these needs; infinity until they cover the whole time."""
        while self._peaks and self._peaks[0][0] < now - self._seconds:
            self._peaks.popleft()
        if now - self._since < self._seconds or now > self._last + _LONGEST_GAP:
            return inf
        return self._peaks[0][1] if self._peaks else 0.0


class _Stream:
    """One queue over time: arrivals in two averages, and a mean run time."""

    def __init__(self) -> None:
        self._at = 0.0
        self._before: QueueTotals | None = None
        self._slow = self._quick = 0.0
        #: the weight in the two averages of what was observed; it starts at 0
        self._slow_weight = self._quick_weight = 0.0
        self._run_time: float | None = None

    def load(self, now: float, found: QueueTotals, share: float = 1.0) -> QueueLoad:
        """The queue's load, from these totals and those before. ``share``: ours of what no pool keeps up with yet."""
        before, passed = self._before, now - self._at
        is_new = before is None or found.measured_at is None or found.measured_at != before.measured_at
        if before is None:
            mean = found.run / found.ended if found.ended > 0 else inf
            self._run_time = mean if isfinite(mean) else None  # a job can write anything into the totals
        if before is not None and passed > 0.0:
            self._note(found, before, passed, share)
        if before is None or passed > 0.0:
            self._before, self._at = found, now
        return QueueLoad(found.ready, found.running, found.oldest, self._arrivals(), self._run_time, is_new)

    def _note(self, found: QueueTotals, before: QueueTotals, passed: float, share: float) -> None:
        ended = max(found.ended - before.ended, 0)
        # What others take from the queue counts as never come: they keep up with their share, and we with ours. What
        # nobody takes is shared: so what all pools together see as coming is what comes.
        came = share * (found.ready + found.reserved - before.ready - before.reserved) + ended
        for_slow, for_quick = exp(-passed / _SLOW), exp(-passed / _QUICK)
        self._slow = for_slow * self._slow + (1 - for_slow) * came / passed
        self._quick = for_quick * self._quick + (1 - for_quick) * came / passed
        self._slow_weight = for_slow * self._slow_weight + 1 - for_slow
        self._quick_weight = for_quick * self._quick_weight + 1 - for_quick
        mean = max(found.run - before.run, 0.0) / ended if ended else inf
        if isfinite(mean):
            weight = 1 - exp(-ended / _JOBS)
            self._run_time = mean if self._run_time is None else self._run_time + weight * (mean - self._run_time)

    def _arrivals(self) -> float:
        """Jobs a second: the slow average, or the quick one if it exceeds the slow one by more than chance explains."""
        if not self._slow_weight:
            return 0.0
        slow, quick = max(self._slow / self._slow_weight, 0.0), self._quick / self._quick_weight
        chance = _CERTAIN * sqrt(max(slow, 1 / _QUICK) / (2 * _QUICK))
        return quick if quick > slow + chance else slow
