"""Jobs that a worker reserved without receiving the reply, because it died or hung. Only its tag identifies them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from queuepool.payload.lease import Lease
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import UNDER_WAY, QueueStore


class LostReplies:
    """Gives such jobs back to their queues."""

    def __init__(self, store: QueueStore, settler: Settler, queues: Sequence[str], retry_after: float) -> None:
        self._store = store
        self._settler = settler
        self._lasts = retry_after + UNDER_WAY
        self._queues = queues
        self._due: list[tuple[float, int, float, Sequence[Lease]]] = []

    def take(self, tag: int, reserve_sent_at: float, known: Sequence[Lease]) -> None:
        """Give back what this tag reserved since ``reserve_sent_at`` (monotonic), except the leases that are ``known``.

        The caller must emit the noted events. After a lease's duration this does nothing: nothing is left to give
        back, and the tag may soon be another worker's. Raises ``StoreDown``.
        """
        now = time.monotonic()
        if not 0.0 <= now - reserve_sent_at < self._lasts:
            return
        self._store.retire(tag)
        self._reclaim(now, tag, reserve_sent_at, known)
        if self._store.commits_late:  # the server may commit its transaction after ours
            self._due.append((now + self._store.commits_late, tag, reserve_sent_at, known))

    def look_again(self, now: float) -> None:
        """Repeat the search where a late transaction may have been committed by now. Raises ``StoreDown``."""
        for due in [due for due in self._due if now >= due[0]]:
            self._reclaim(now, *due[1:])
            self._due.remove(due)
            self._settler.emit_noted()

    def _reclaim(self, now: float, tag: int, reserve_sent_at: float, known: Sequence[Lease]) -> None:
        self._settler.reclaim(self._queues, tag, max(now - reserve_sent_at, 0.0) + UNDER_WAY, known)
