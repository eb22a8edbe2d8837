"""The unique locks of jobs that no worker has: of jobs that are dropped, and of jobs put back on their queue.

They are found in the payloads alone, by the same rules as a worker's (``endings``). What becomes of the states of
tracked jobs that are dropped is found with them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from queuepool.board.about import operator
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import BadPayload
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, Payload, decode
from queuepool.payload.lease import Lock, StateRecord, Unlock
from queuepool.payload.options import TRACK, PayloadOptions
from queuepool.payload.unique_locks import NAME, seconds_in
from queuepool.settlement.endings import Endings, commands_of
from queuepool.settlement.states import cancelled
from queuepool.stores.factory import Stores
from queuepool.stores.locks import Finder
from queuepool.stores.records import Returned

#: every payload that mentions a lock has one of these, in its context or in the command of an object job
_MARKS = (NAME.encode(), b"uniqueLockOwner", b"shouldBeUnique", b"UniqueBroadcastEvent")
#: and every payload that asks to be tracked this one
_TRACKS = (TRACK.encode(),)


class HeldLocks:
    """The locks of one connection's jobs.

    ``waiting`` finds the locks of jobs in a queue. ``set_aside`` finds those of failed and quarantined jobs, by owner
    only: a failed job's own lock has been released, and one that another job holds by now must stay.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._endings = Endings(settings, commands_of(settings))
        self._why = f"dropped by {operator()}"
        self.waiting = Finder(_MARKS, self._of_waiting, _TRACKS, self._dropped)
        self.set_aside = Finder(_MARKS, self._of_set_aside, _TRACKS, self._dropped)

    def put_back(self, stores: Stores, raw: bytes, back: Callable[[Lock | None], Returned], *, ended: bool) -> Returned:
        """Call ``back``, which puts the job with these bytes on its queue and takes the given lock in the same step.

        ``ended``: the job had ended and its lock was released; otherwise a lock without an owner is still its own. A
        lock in another store is taken first, and released again if the job is not put back.
        """
        found = self._to_take(raw, ended)
        if found is None:
            return back(None)
        lock, store, is_laravels = found
        place = next((locks for kind, locks in stores.laravel_locks if kind == store), None)
        is_here = store == kind_of(stores.settings.url) and not (place and is_laravels)
        if not store or is_here:
            return back(lock)
        if place and not place.take(lock):
            return Returned.HELD
        answer = back(None)
        if place and not answer:
            place.release([Unlock(lock.name, lock.owner)])
        return answer

    def _of_waiting(self, raw: bytes) -> tuple[Unlock, ...]:
        try:
            return self._endings.held_locks(decode(raw, 0))
        except BadPayload:
            return self._of_set_aside(raw)

    def _of_set_aside(self, raw: bytes) -> tuple[Unlock, ...]:
        payload = _read(raw)
        return tuple(lock for lock in self._endings.held_locks(payload) if lock.owner) if payload else ()

    def _dropped(self, queue: str, raw: bytes, attempts: int | None) -> StateRecord | None:
        return cancelled(raw, attempts, queue, self._why)

    def _to_take(self, raw: bytes, ended: bool) -> tuple[Lock, str, bool] | None:
        """The lock that the payload names, the kind of store that has it, and whether it may be among Laravel's locks.

        ``None`` if there is no lock, or if it may have one of several names.
        """
        payload = _read(raw) if self.waiting.may_hold(raw) else None
        locks = self._endings.held_locks(payload) if payload else ()
        if not payload or len(locks) != 1:
            return None
        [(name, owner, store)] = locks
        if not owner and not ended:
            return None
        lock = Lock(name, owner or secrets.token_hex(8), seconds_in(payload.fields))
        return lock, store, payload.options.job == OBJECT_JOB


def _read(raw: bytes) -> Payload | None:
    """The payload; of bytes that cannot be a job, what in their JSON may name a lock."""
    try:
        return decode(raw, 0)
    except BadPayload:
        pass  # its JSON may still name a lock
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return _of_fields(fields) if isinstance(fields, dict) else None


def _of_fields(fields: Mapping[str, Any]) -> Payload:
    job, shown = (value if isinstance(value := fields.get(key), str) else "" for key in ("job", "displayName"))
    options = PayloadOptions(job, shown or job)
    return Payload("", "", fields.get("data"), 0, options, context=fields.get(CONTEXT), fields=fields)
