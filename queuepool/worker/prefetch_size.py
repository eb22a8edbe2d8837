"""How many jobs a worker reserves at once."""

from __future__ import annotations

from queuepool.config.values import MAX_AHEAD

#: seconds of work to hold at once, at least and at most: as long as a job may wait behind a slow one (promise 5)
_AT_LEAST, _AT_MOST = 0.005, 0.1
#: in between: this many times as long as the worker waits for a reserve
_WAITS = 2
#: most jobs and bytes
MOST, _MOST_BYTES = MAX_AHEAD, 64 * 1024
#: the last value's weight in an average
_LAST = 0.25


class PrefetchSize:
    """How many jobs to reserve ahead: as many as are likely to be done before their wait is noticeable.

    ``fixed``: always this many; 0 = by how long jobs take. ``wanted``: the last number.

    A slow job counts at once, quick ones gradually: too many reserved make jobs wait, too few cost a round trip. While
    the worker has to wait for the store, it holds more: on a crowded machine a quick job that had to wait for a
    processor looks like a slow one, and each round trip waits for it several times.
    """

    def __init__(self, fixed: int) -> None:
        self._fixed = fixed
        #: seconds that the worker waits for a reserve, on average
        self._wait = 0.0
        #: how many to hold after some were parked
        self._parks = 1
        self.start_over()

    def start_over(self) -> None:
        """Forget the averages of the jobs, which may be of another kind from now on, and begin with one."""
        self._seconds, self._bytes, self.wanted = _AT_LEAST, 0.0, 0

    def took(self, seconds: float, size: int) -> None:
        """A job with a payload of ``size`` bytes ran for ``seconds``."""
        self._seconds = max(seconds, self._seconds + (seconds - self._seconds) * _LAST)
        self._bytes = max(size, self._bytes + (size - self._bytes) * _LAST)

    def waited(self, seconds: float) -> None:
        """The worker has waited for a reserve's reply."""
        self._wait += (seconds - self._wait) * _LAST

    def parked(self) -> int:
        """How many to reserve now that some of the last ones were parked, all in one step; 0 = as ``ahead``.

        More of a flood may follow, and is parked as quickly; how long a job takes that found its place does not count.
        """
        self._parks = min(2 * self._parks, MOST)
        return 0 if self._fixed else self._parks

    def ahead(self) -> int:
        """How many to reserve now; at most twice as many as last time."""
        at_once = max(_AT_LEAST, min(_WAITS * self._wait, _AT_MOST))
        fits = min(at_once / self._seconds, _MOST_BYTES / max(self._bytes, 1.0))
        self.wanted = self._fixed or max(1, min(int(fits), 2 * self.wanted, MOST))
        return self.wanted
