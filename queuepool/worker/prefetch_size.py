"""How many jobs to reserve ahead: as many as are likely to be done before anybody notices that they waited."""

from __future__ import annotations

from queuepool.config.values import MOST_AHEAD

#: seconds of work to hold at once, and how many jobs and bytes at most
_AT_ONCE, MOST, _MOST_BYTES = 0.005, MOST_AHEAD, 64 * 1024
#: the part that the last job has in the average, when it was quicker
_QUICKER = 0.25


class PrefetchSize:
    """Of one worker. ``fixed``: how many to reserve, 0 = by the time that jobs take; ``wanted``: how many it was last.

    A slow job counts at once, quick ones by and by: a wrong guess lets jobs wait, a shy one costs a round trip.
    """

    def __init__(self, fixed: int) -> None:
        self._fixed = fixed
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing was there to be done: what comes next may be of another kind."""
        self._seconds, self._bytes, self.wanted = _AT_ONCE, 0.0, 1

    def took(self, seconds: float, size: int) -> None:
        """A job of so many bytes ran for so long."""
        self._seconds = max(seconds, self._seconds + (seconds - self._seconds) * _QUICKER)
        self._bytes = max(size, self._bytes + (size - self._bytes) * _QUICKER)

    def ahead(self) -> int:
        """How many to reserve now; at most twice as many as last time."""
        fits = min(_AT_ONCE / self._seconds, _MOST_BYTES / max(self._bytes, 1.0))
        self.wanted = self._fixed or max(1, min(int(fits), 2 * self.wanted, MOST))
        return self.wanted
