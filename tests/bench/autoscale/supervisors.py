"""The two ways to decide: Horizon's, and the function that our steward calls.

Source: AutoScaler.php, scale and scalePool, and RedisMetricsRepository.php, runtimeForQueue (Horizon 5.x), with one
queue: `balance` auto, `autoScalingStrategy` time. Its share of the time to clear all queues is then all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from queuepool.steward.demand import QueueTotals, Scaler
from queuepool.steward.wish import Aims
from tests.bench.autoscale.world import Sight

#: seconds between two snapshots, which forget the run times so far: `horizon:snapshot` every five minutes
_SNAPSHOT = 300.0


@dataclass
class Horizon:
    """``shift`` processes at most in one step (balanceMaxShift), and one step in ``cooldown`` s (balanceCooldown)."""

    fewest: int
    most: int
    shift: int = 1
    cooldown: float = 3.0

    def __post_init__(self) -> None:
        self._next = 0.0
        self._snapshot_at = 0.0
        self._ended, self._run = 0, 0.0

    def decide(self, sight: Sight) -> int:
        if sight.now < self._next:
            return sight.workers
        self._next = sight.now + self.cooldown
        wanted = ceil(self._wanted(sight))
        if wanted > sight.workers:
            room = max(0, self.most - sight.workers - sight.leaving)  # those that finish a last job count, too
            return min(sight.workers + min(room, self.shift), wanted)
        if wanted < sight.workers:
            return max(sight.workers - min(sight.workers - self.fewest, self.shift), self.fewest, wanted)
        return sight.workers

    def _wanted(self, sight: Sight) -> float:
        time_to_clear = sight.ready * self._run_time(sight)
        if time_to_clear > 0:
            return self.most
        return self.most if sight.ready else self.fewest

    def _run_time(self, sight: Sight) -> float:
        """The mean since the last snapshot; 0 while no job has ended since."""
        if sight.now >= self._snapshot_at + _SNAPSHOT:
            self._snapshot_at, self._ended, self._run = sight.now, sight.ended, sight.run
        ended = sight.ended - self._ended
        return (sight.run - self._run) / ended if ended else 0.0


class Ours:
    """As a steward and its master do it, with our defaults, where no other pool publishes a notice."""

    def __init__(self, fewest: int, most: int, target_wait: float = 10.0, scale_down_after: float = 60.0) -> None:
        self._aims = Aims(fewest, most, target_wait)
        self._scaler = Scaler(scale_down_after)

    def decide(self, sight: Sight) -> int:
        there = sight.running + sight.elsewhere
        queue = QueueTotals(sight.ready, there, sight.running, sight.oldest, sight.ended, sight.run)
        return self._scaler.look(sight.now, {"default": queue}, sight.workers, sight.starting, self._aims).workers
