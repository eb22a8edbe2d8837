"""What a worker reserved without hearing of it, because it died asking. Known by its tag alone."""

from __future__ import annotations

import time
from collections.abc import Sequence

from queuepool.settle import Settler
from queuepool.stores.base import UNDER_WAY, Lease

#: seconds after the first look at which to look again: its request may have lain in a buffer, behind ours
_AGAIN = (1.0, 3.0)


class Unheard:
    """Gives such jobs back."""

    def __init__(self, settler: Settler, queues: Sequence[str]) -> None:
        self._settler = settler
        self._queues = queues
        self._due: list[tuple[float, int, float, Sequence[Lease]]] = []

    def take(self, tag: int, asked: float, known: Sequence[Lease]) -> None:
        """Of the worker with this tag, which asked at this time (monotonic); all but the leases that are ``known``.

        Its caller has to tell what is noted.
        """
        now = time.monotonic()
        self._reclaim(now, tag, asked, known)
        self._due += [(now + later, tag, asked, known) for later in _AGAIN]

    def look_again(self, now: float) -> None:
        """Whenever it is time to."""
        for due in [due for due in self._due if now >= due[0]]:
            self._reclaim(now, *due[1:])
            self._due.remove(due)
            self._settler.tell()

    def _reclaim(self, now: float, tag: int, asked: float, known: Sequence[Lease]) -> None:
        self._settler.reclaim(self._queues, tag, max(now - asked, 0.0) + UNDER_WAY, known)
