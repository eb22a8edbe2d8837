"""What is said of unique locks that were not found where they were to be released."""

from __future__ import annotations

from queuepool.config.settings import ConnectionSettings
from queuepool.events import JobFacts, PayloadOdd
from queuepool.payload.envelope import OBJECT_JOB, Payload
from queuepool.settlement.verdict import Release, Verdict
from queuepool.stores.control import prefix_of
from queuepool.stores.locks import LocksOf

_MISSED = "its unique lock was not found at its release: unless it expired, or the job was retried by hand, "
_OURS = "the pusher uses another url, prefix or restart_key than this pool, and the lock stays held"
_LARAVELS = "Laravel holds the lock elsewhere and drops later dispatches: set {}; check --peek looks for it"
_WITHOUT_PREFIX, _WITH_PREFIX = (
    "restart_key with the prefix of Laravel's cache",
    "lock_url, or correct the prefix in restart_key",
)


class MissedLocks:
    """Unique locks that were not where they should be: while Laravel holds one elsewhere, it drops later dispatches.

    Reported once per process and name of a job. ``locks_of`` knows what the last release found.
    """

    def __init__(self, connection: ConnectionSettings, locks_of: LocksOf) -> None:
        self._laravels = _LARAVELS.format(_WITH_PREFIX if prefix_of(connection.restart_key) else _WITHOUT_PREFIX)
        self._locks_of = locks_of
        self._names: set[str] = set()

    def at_start(self, facts: JobFacts, payload: Payload) -> PayloadOdd | None:
        """The event for a job whose locks were to be released before its first attempt."""
        return self._event(facts, payload) if payload.attempts <= 1 else None

    def at_end(self, facts: JobFacts, payload: Payload, verdict: Verdict) -> PayloadOdd | None:
        """The event for a job whose end was to release its locks; ``None`` if there is nothing to report."""
        return None if isinstance(verdict, Release) else self._event(facts, payload)

    def _event(self, facts: JobFacts, payload: Payload) -> PayloadOdd | None:
        if not self._locks_of.missed or payload.name in self._names:
            return None
        self._names.add(payload.name)
        return PayloadOdd(facts, _MISSED + (self._laravels if payload.options.job == OBJECT_JOB else _OURS))
