"""Preparing jobs in a lone worker: what has killed who read it is set aside, which the steward does in a pool.

Nobody sees a lone worker die; that a job comes a second time may mean that. So before such a job is read the store
counts it, by its bytes, and forgets that once it has been read. A job that comes for the first time costs nothing.
"""

from __future__ import annotations

import re

from queuepool.errors import BadPayload
from queuepool.payload.lease import Lease
from queuepool.settlement.settler import DEADLY, Settler
from queuepool.worker.preparation import Attempt, Preparer

#: which attempts a payload says that it has had, at any depth
_ATTEMPTS = re.compile(rb'"attempts"\s*+:\s*+"?+0*+(\d++)')


class LonePreparer:
    """A ``Preparer`` that survives what it reads, in the end."""

    def __init__(self, preparer: Preparer, settler: Settler) -> None:
        self._preparer = preparer
        self._settler = settler

    def prepare(self, lease: Lease) -> Attempt:
        """As ``Preparer.prepare``; raises ``BadPayload`` also for what a reader has died of."""
        if not _has_come_before(lease):
            return self._preparer.prepare(lease)
        if self._settler.suspect(lease):
            raise BadPayload(DEADLY)
        try:
            attempt = self._preparer.prepare(lease)
        except BadPayload:
            self._settler.acquit(lease)
            raise
        self._settler.acquit(lease)
        return attempt


def _has_come_before(lease: Lease) -> bool:
    """Whether this is not the first attempt, without reading the payload: rather once too often than not at all."""
    if lease.attempts is not None:
        return lease.attempts > 1
    return any(attempts != b"1" for attempts in _ATTEMPTS.findall(lease.receipt))
