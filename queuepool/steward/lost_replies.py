"""What a worker reserved without hearing of it, because it died asking. Known by its tag alone."""

from __future__ import annotations

import time
from collections.abc import Sequence

from queuepool.payload.lease import Lease
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import UNDER_WAY, QueueStore


class LostReplies:
    """Gives such jobs back."""

    def __init__(self, store: QueueStore, settler: Settler, queues: Sequence[str], retry_after: float) -> None:
        self._store = store
        self._settler = settler
        self._lasts = retry_after + UNDER_WAY
        self._queues = queues
        self._due: list[tuple[float, int, float, Sequence[Lease]]] = []

    def take(self, tag: int, asked: float, known: Sequence[Lease]) -> None:
        """Of the worker with this tag, which asked at this time (monotonic); all but the leases that are ``known``.

        Its caller has to tell what is noted. After a lease there is nothing left to give back, and the tag may soon be
        another worker's.
        """
        now = time.monotonic()
        if not 0.0 <= now - asked < self._lasts:
            return
        self._store.retire(tag)
        self._reclaim(now, tag, asked, known)
        if self._store.commits_late:  # its transaction may be ended by the server after ours
            self._due.append((now + self._store.commits_late, tag, asked, known))

    def look_again(self, now: float) -> None:
        """Whenever it is time to."""
        for due in [due for due in self._due if now >= due[0]]:
            self._reclaim(now, *due[1:])
            self._due.remove(due)
            self._settler.tell()

    def _reclaim(self, now: float, tag: int, asked: float, known: Sequence[Lease]) -> None:
        self._settler.reclaim(self._queues, tag, max(now - asked, 0.0) + UNDER_WAY, known)
