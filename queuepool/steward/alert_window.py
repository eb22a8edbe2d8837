"""What has come to a pool's counters within five minutes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import NamedTuple

from queuepool.board.counts import PoolCounts

#: seconds
WINDOW = 300.0
#: why a worker leaves that has died
_DEATHS = ("crash", "killed")


class Recent(NamedTuple):
    """What has come within the window."""

    #: by queue: attempts that ended with a verdict, and those among them that failed for good
    attempts: Mapping[str, tuple[int, int]] = {}
    #: workers that died by themselves or were killed from outside
    deaths: int = 0
    #: whether the looks go back for as long as the window
    is_whole: bool = True


class AlertWindow:
    """Keeps the counters of each look of the last five minutes; before that has passed, of the time since the first."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Recent]] = deque()
        self._is_whole = False

    def add(self, now: float, counts: PoolCounts) -> Recent:
        """Add a look at ``now`` (monotonic seconds); returns what has come since the oldest one that is kept."""
        present = _summed(counts)
        self._looks.append((now, present))
        while self._looks[0][0] < now - WINDOW:
            self._looks.popleft()
            self._is_whole = True
        first = self._looks[0][1]
        came = {queue: _minus(totals, first.attempts.get(queue, (0, 0))) for queue, totals in present.attempts.items()}
        return Recent(came, max(present.deaths - first.deaths, 0), self._is_whole)


def _summed(counts: PoolCounts) -> Recent:
    ended, failed = Counter[str](), Counter[str]()
    for (queue, _), job in counts.jobs.items():
        ended[queue] += job.ended - job.given_back
        failed[queue] += job.failed
    attempts = {queue: (ended[queue], failed[queue]) for queue in ended}
    return Recent(attempts, sum(counts.exits.get(reason, 0) for reason in _DEATHS))


def _minus(totals: tuple[int, int], first: tuple[int, int]) -> tuple[int, int]:
    # Never below 0: a file that a job has overwritten may make a counter smaller.
    return max(totals[0] - first[0], 0), max(totals[1] - first[1], 0)
