"""A worker's membership in its queues: the tag under which it reserves, which says whose a lost reply's jobs are."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from queuepool.payload.lease import Lease
from queuepool.stores.contract import UNDER_WAY
from queuepool.worker.context import WorkerContext

#: seconds beyond a lease for which a worker trusts its tag after using it; the stores keep it longer
_TAG_LASTS = 240.0


class Membership:
    """One worker's tag, which sets it apart from all that serve its queues; its slot shows the tag to the steward.

    Drawn at the start, and replaced whenever a request under the old one may still be on its way.
    """

    def __init__(self, context: WorkerContext) -> None:
        self.tag = 0
        self._lasts = context.pool.connection.retry_after + _TAG_LASTS
        self._queues = context.pool.queues
        self._store = context.store
        self._settler = context.settler
        self._outage = context.outage
        self._slot = context.slot_writer.slot
        #: the store's count of unanswered calls when the tag was drawn
        self._unanswered = 0
        #: when the tag was drawn or last used for a reserve (monotonic)
        self.used_at = 0.0
        #: when to search (monotonic), and for which retired tag; its transaction may be committed until then
        self._late: deque[tuple[float, int]] = deque()

    def join(self) -> None:
        """Draw the first tag; waits for the store. Raises ``StoreDown`` if a stop signal comes first."""
        self.tag = self._slot.tag = self._draw(0)

    @property
    def is_spent(self) -> bool:
        """Whether a request under this tag may still be on its way, so that the next reserve needs another tag."""
        return self._store.unanswered != self._unanswered or not self._is_kept()

    def renew(self, known: Sequence[Lease]) -> None:
        """Draw a new tag, and give back what the old one reserved, except the leases that are ``known``.

        It retires the old tag first, so that nothing more can be reserved under it. Raises ``StoreDown``.
        """
        slot, kept = self._slot, self._is_kept()
        tag = self._draw(self.tag if kept else 0)
        if slot.reserve_sent_at and kept:
            self._settler.reclaim(self._queues, self.tag, time.monotonic() - slot.reserve_sent_at + UNDER_WAY, known)
            self._settler.emit_noted()
            if self._store.commits_late:
                self._late.append((time.monotonic() + self._store.commits_late, self.tag))
        self.tag = slot.tag = tag
        slot.reserve_sent_at = 0.0

    def look_again(self, known: Sequence[Lease]) -> None:
        """Search again for jobs of old tags whose transactions can no longer be committed."""
        while self._late and time.monotonic() >= self._late[0][0]:
            self._settler.reclaim(self._queues, self._late[0][1], UNDER_WAY, known)
            self._settler.emit_noted()
            self._late.popleft()

    def _draw(self, old: int) -> int:
        tag = self._outage.insist(lambda: self._store.join(old, self._queues))[0]
        self._unanswered, self.used_at = self._store.unanswered, time.monotonic()
        return tag

    def _is_kept(self) -> bool:
        """Whether the store still keeps the tag for this worker; long after its last use another worker may get it."""
        return time.monotonic() - self.used_at < self._lasts
