"""How many jobs to reserve ahead: as many as are likely to be done before their wait is noticeable."""

from __future__ import annotations

from queuepool.config.values import MAX_AHEAD

#: seconds of work to hold at once; most jobs and bytes
_AT_ONCE, MOST, _MOST_BYTES = 0.005, MAX_AHEAD, 64 * 1024
#: the last job's weight in the average, if it was quicker
_QUICKER = 0.25


class PrefetchSize:
    """One worker's. ``fixed``: how many to reserve; 0 = by how long jobs take. ``wanted``: the last number.

    A slow job counts at once, quick ones gradually: too many make jobs wait, too few cost a round trip.
    """

    def __init__(self, fixed: int) -> None:
        self._fixed = fixed
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the averages: the next jobs may be of another kind."""
        self._seconds, self._bytes, self.wanted = _AT_ONCE, 0.0, 1

    def took(self, seconds: float, size: int) -> None:
        """A job with a payload of ``size`` bytes ran for ``seconds``."""
        self._seconds = max(seconds, self._seconds + (seconds - self._seconds) * _QUICKER)
        self._bytes = max(size, self._bytes + (size - self._bytes) * _QUICKER)

    def ahead(self) -> int:
        """How many to reserve now; at most twice as many as last time."""
        fits = min(_AT_ONCE / self._seconds, _MOST_BYTES / max(self._bytes, 1.0))
        self.wanted = self._fixed or max(1, min(int(fits), 2 * self.wanted, MOST))
        return self.wanted
