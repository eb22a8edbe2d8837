"""Unique locks that were not where they should be: Laravel drops each later dispatch while it holds one elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from queuepool.config.settings import ConnectionSettings
from queuepool.events import Event, JobFacts, PayloadOdd
from queuepool.payload.envelope import OBJECT_JOB, Payload
from queuepool.stores.control import prefix_of
from queuepool.stores.locks import LocksOf

_MISSED = "its unique lock was not there to be released: unless its time was over, or the job was retried by hand, "
_OURS = "whoever pushed it has another url, prefix or restart_key than this pool, and it stays held"
_LARAVELS = "Laravel holds it elsewhere and drops later dispatches: set {}; check --peek looks for it"
_WITHOUT_PREFIX, _WITH_PREFIX = (
    "restart_key with the prefix of Laravel's cache",
    "lock_url, or mend that prefix in restart_key",
)


class MissedLocks:
    """Says it once in this process for each name of a job. ``locks_of`` knows of the last release of locks."""

    def __init__(self, connection: ConnectionSettings, locks_of: LocksOf, note: Callable[[Event], None]) -> None:
        self._laravels = _LARAVELS.format(_WITH_PREFIX if prefix_of(connection.restart_key) else _WITHOUT_PREFIX)
        self._locks_of = locks_of
        self._note = note
        self._names: set[str] = set()

    def tell(self, facts: JobFacts, payload: Payload) -> None:
        """Note the event if the locks of this job were missed, unless that has been said."""
        if self._locks_of.missed and payload.name not in self._names:
            self._names.add(payload.name)
            words = self._laravels if payload.options.job == OBJECT_JOB else _OURS
            self._note(PayloadOdd(facts, _MISSED + words))
