"""A worker's tag: drawn at its start, and another one whenever a request under the old one may still be on its way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from queuepool.board.slot import Slot
from queuepool.config.settings import ConnectionSettings
from queuepool.payload.lease import Lease
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import UNDER_WAY, QueueStore

#: seconds beyond a lease for which a worker takes its tag to be its own since it used it; the stores keep it longer
_LASTS = 240.0


class Membership:
    """Of one worker among all that serve its ``queues``; its ``slot`` shows the tag to the steward, if it dies."""

    def __init__(
        self, connection: ConnectionSettings, queues: Sequence[str], store: QueueStore, settler: Settler,
        outage: Outage, slot: Slot,
    ) -> None:  # fmt: skip
        self.tag = 0
        self._lasts = connection.retry_after + _LASTS
        self._queues = queues
        self._store = store
        self._settler = settler
        self._outage = outage
        self._slot = slot
        #: what the store counted as unanswered when the tag was drawn
        self._unanswered = 0
        #: when it was drawn or reserved under last (monotonic)
        self.used_at = 0.0
        #: retired tags under which a transaction may still be committed, and when to look (monotonic)
        self._late: deque[tuple[float, int]] = deque()

    def join(self) -> None:
        """The first tag."""
        self.tag = self._slot.tag = self._draw(0)

    @property
    def is_spent(self) -> bool:
        """Whether a request under this tag may still be on its way: it must not meet what is reserved next."""
        return self._store.unanswered != self._unanswered or not self._is_kept()

    def renew(self, known: Sequence[Lease]) -> None:
        """Another tag; what the old one has reserved goes back, all but the leases that are ``known``.

        First nothing more can be reserved under it, and then what was is looked for. Raises ``StoreDown``.
        """
        slot, kept = self._slot, self._is_kept()
        tag = self._draw(self.tag if kept else 0)
        if slot.asked and kept:
            self._settler.reclaim(self._queues, self.tag, time.monotonic() - slot.asked + UNDER_WAY, known)
            self._settler.tell()
            if self._store.commits_late:
                self._late.append((time.monotonic() + self._store.commits_late, self.tag))
        self.tag = slot.tag = tag
        slot.asked = 0.0

    def look_again(self, known: Sequence[Lease]) -> None:
        """At old tags, once no transaction under them can be committed any more."""
        while self._late and time.monotonic() >= self._late[0][0]:
            self._settler.reclaim(self._queues, self._late[0][1], UNDER_WAY, known)
            self._settler.tell()
            self._late.popleft()

    def _draw(self, old: int) -> int:
        tag = self._outage.insist(lambda: self._store.join(old))[0]
        self._unanswered, self.used_at = self._store.unanswered, time.monotonic()
        return tag

    def _is_kept(self) -> bool:
        """Whether the store keeps the tag for this worker: some time after it was used, another may get it."""
        return time.monotonic() - self.used_at < self._lasts
