"""Records set aside in Redis; see ``stores.records.Records``.

Failed jobs, and failures that wait for another failed store, are each a hash of records by id and a sorted set of ids
by time. Payloads that cannot be jobs are in a list for each queue, as entries ``TIME REASON BYTES``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from queuepool.payload.lease import Lock, StateRecord, Unlock
from queuepool.payload.members import MemberOf, member_in_text
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.records import (
    FailedJob,
    PendingFailure,
    Quarantined,
    RecordKey,
    Retrying,
    Returned,
    json_in,
    sound_record,
)
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.walk import Scored, following
from queuepool.stores.redis.wire import BATCH, BATCH_BYTES, Keys, whole
from queuepool.stores.steps import in_steps

#: records that are read at once to find their locks: each may have many kilobytes
_READ = 100
#: entries of the quarantine that are read at once
_PAGE = 100
_ENTRY = re.compile(rb"(\d{1,12}\.\d{6}) ([!-~]{1,64}) (.*)", re.DOTALL)
#: the texts of a failed job's record, except its id
_WORDS = ("name", "queue", "connection", "payload", "exception")


class RedisRecords:
    """The records of one connection; the id of a quarantined entry is the start of its SHA-1.

    ``clock`` returns '' for the server's, or a test's Unix seconds as text.
    """

    def __init__(
        self, client: RedisClient, keys: Keys, locks_of: LocksOf, clock: Callable[[], str] = lambda: ""
    ) -> None:
        self._client = client
        self._keys = keys
        self._locks_of = locks_of
        self._clock = clock

    def now(self) -> float:
        seconds, micros = self._client.command("TIME")
        return int(seconds) + int(micros) / 1e6

    def count(self) -> int:
        return int(self._client.command("ZCARD", self._keys.failed_times))

    def page(self, after: RecordKey | None = None, count: int = 1000) -> list[FailedJob]:
        last = Scored(float(after.mark), after.id.encode()) if after else None
        rows = following(self._ask_times, last, count, is_down=True)
        texts = self._client.command("HMGET", self._keys.failed, *(row.member for row in rows)) if rows else []
        found = zip(rows, texts, strict=True)
        return [_record(row.member.decode(), text, row.score) for row, text in found if text]

    def _ask_times(self, verb: str, *rest: Any) -> Any:
        return self._client.command(verb, self._keys.failed_times, *rest)

    def get(self, job_id: str) -> FailedJob | None:
        at = self._client.command("ZSCORE", self._keys.failed_times, job_id)
        text = self._client.command("HGET", self._keys.failed, job_id)
        return _record(job_id, text, float(at)) if at is not None and text is not None else None

    def record(self, failure: PendingFailure) -> None:
        mark = {"failure": failure.id}
        text = json.dumps({**failure.record, **mark})
        args = ["", failure.record["id"], text, json.dumps(mark)[1:], failure.id]
        self._client.script("record", [self._keys.failed, self._keys.failed_times], args)

    def retry(
        self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None, lock: Lock | None = None
    ) -> Returned:
        return self.retry_all([Retrying(failed, state, lock)], queue)[0]

    def retry_all(self, jobs: Sequence[Retrying], queue: str | None = None) -> list[Returned]:
        steps = in_steps(jobs, _READ, BATCH_BYTES, lambda job: len(job.failed.payload))
        return [answer for step in steps for answer in self._retry(step, queue)]

    def _retry(self, jobs: Sequence[Retrying], queue: str | None) -> Iterator[Returned]:
        members = [member_in_text(job.failed.payload) for job in jobs]
        if not any(members):
            yield from self._retry_plain(jobs, queue)
            return
        for job, member in zip(jobs, members, strict=True):
            yield (
                self.resume(job, member, queue, is_here=True) if member else next(iter(self._retry_plain([job], queue)))
            )

    def resume(self, job: Retrying, member: MemberOf, queue: str | None = None, *, is_here: bool = False) -> Returned:
        (failed, state, lock), keys = job, self._keys
        target, (of_flow, words) = queue or failed.queue, keys.of_flow(member.flow)
        names = [keys.failed, *of_flow, keys.failed_times, keys.ready(target), keys.notify(target)]
        # As below.
        names += [keys.state(state.job_id) if state else keys.failed, keys.lock(lock.name) if lock else keys.failed]
        args: list[Any] = [
            "",
            member.number,
            "",
            *words,
            self._clock(),
            failed.id if is_here else "",
            failed.payload,
            failed.mark,
        ]
        args += [state.text, whole(state.seconds)] if state else ["", ""]
        args += [lock.owner, lock.seconds] if lock else ["", ""]
        answer = self._client.script("retry_member", names, args)
        if answer == 2:
            while self._client.script("start_flow", of_flow, [*words, self._clock(), BATCH]) == b"more":
                pass
        return Returned(min(answer, 1))

    def _retry_plain(self, jobs: Sequence[Retrying], queue: str | None) -> Iterator[Returned]:
        names, args = [self._keys.failed, self._keys.failed_times], list[Any]()
        for failed, state, lock in jobs:
            target = queue or failed.queue
            names += [self._keys.ready(target), self._keys.notify(target)]
            # A key that is not used must be one that the user may write.
            names += [self._keys.state(state.job_id) if state else self._keys.failed]
            names += [self._keys.lock(lock.name) if lock else self._keys.failed]
            args += [failed.id, failed.payload, failed.mark]
            args += [state.text, whole(state.seconds)] if state else ["", ""]
            args += [lock.owner, lock.seconds] if lock else ["", ""]
        return map(Returned, self._client.script("retry", names, args))

    def drop(self, keys: Sequence[RecordKey], finder: Finder = NO_LOCKS) -> list[bool]:
        parts = (keys[first : first + _READ] for first in range(0, len(keys), _READ))
        return [answer for part in parts for answer in self._drop(part, finder)]

    def _drop(self, keys: Sequence[RecordKey], finder: Finder) -> list[bool]:
        names, args = [self._keys.failed, self._keys.failed_times], []
        for key, payload in zip(keys, self._read(keys, finder), strict=True):
            unlocks = self._locks_of.here(finder.locks_of(payload)) if payload else ()
            names += [self._keys.lock(lock.name) for lock in unlocks]
            args += [*key, len(unlocks), *(lock.owner for lock in unlocks)]
        return [answer == 1 for answer in self._client.script("drop", names, args)]

    def holding(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        parts = (keys[first : first + _READ] for first in range(0, len(keys), _READ))
        return [payload for part in parts for payload in self._read(part, finder) if payload]

    def _read(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        """The payload of each record that may hold a lock; empty for any other."""
        if not finder.marks:
            return [b""] * len(keys)
        texts = self._client.command("HMGET", self._keys.failed, *(key.id for key in keys))
        return [_record("", text, 0.0).payload.encode() if text and finder.may_hold(text) else b"" for text in texts]

    def older_than(self, moment: float, count: int = 1000) -> list[RecordKey]:
        bounds = ("-inf", f"({moment}", "WITHSCORES", "LIMIT", 0, count)
        rows = self._client.command("ZRANGEBYSCORE", self._keys.failed_times, *bounds)
        return [RecordKey(key.decode(), repr(float(at))) for key, at in zip(rows[::2], rows[1::2], strict=True)]

    # The outbox, which ``fail.lua`` fills

    def count_pending(self) -> int:
        return int(self._client.command("ZCARD", self._keys.pending_times))

    def pending(self, first: int = 0, count: int = 100) -> list[PendingFailure]:
        ids = self._client.command("ZRANGE", self._keys.pending_times, first, first + count - 1)
        texts = self._client.command("HMGET", self._keys.pending, *ids) if ids else []
        found = zip(ids, texts, strict=True)
        return [PendingFailure(key.decode(), sound_record(json_in(text))) for key, text in found if text is not None]

    def drop_pending(self, failure: PendingFailure) -> None:
        self._client.script("recorded", [self._keys.pending, self._keys.pending_times], [failure.id])

    # The quarantine

    def quarantined(self, queue: str) -> Iterator[Quarantined]:
        return (_parsed(queue, raw) for raw in self._raw(queue))

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None, lock: Lock | None = None) -> Returned:
        raw = self._find(queue, entry_id)
        if raw is None:
            return Returned.GONE
        keys = [self._keys.quarantine(queue), self._keys.ready(queue), self._keys.notify(queue)]
        repaired = _parsed(queue, raw).payload if payload is None else payload
        keys += [self._keys.lock(lock.name)] if lock else []
        args = [raw, repaired, *([lock.owner, lock.seconds] if lock else [])]
        return Returned(self._client.script("requeue", keys, args))

    def drop_quarantined(
        self, queue: str, entry_id: str, unlocks: Sequence[Unlock] = (), state: StateRecord | None = None
    ) -> bool:
        raw = self._find(queue, entry_id)
        if raw is None:
            return False
        here = self._locks_of.here(unlocks)
        job_id, text, seconds = state or ("", b"", 0.0)
        names = [self._keys.quarantine(queue), self._keys.state(job_id), *(self._keys.lock(lock.name) for lock in here)]
        args = [raw, text, whole(seconds), *(lock.owner for lock in here)]
        return bool(self._client.script("drop_entry", names, args) == 1)

    def _find(self, queue: str, entry_id: str) -> bytes | None:
        return next((raw for raw in self._raw(queue) if _digest(raw) == entry_id), None)

    def _raw(self, queue: str) -> Iterator[bytes]:
        first = 0
        while rows := self._client.command("LRANGE", self._keys.quarantine(queue), first, first + _PAGE - 1):
            yield from rows
            first += _PAGE


def _record(key: str, text: bytes, at: float) -> FailedJob:
    found = json_in(text)
    is_sound = isinstance(found, dict) and isinstance(found.get("payload"), str)
    damaged = {"payload": text.decode("utf-8", "backslashreplace"), "exception": "this record is damaged"}
    fields: dict[str, Any] = found if is_sound else damaged  # type: ignore[assignment]
    words = {name: value if isinstance(value := fields.get(name), str) else "" for name in _WORDS}
    attempts = fields.get("attempts")
    return FailedJob(
        id=key, **words, attempts=attempts if isinstance(attempts, int) else None, failed_at=at, mark=repr(at)
    )


def _parsed(queue: str, raw: bytes) -> Quarantined:
    found = _ENTRY.match(raw)
    at, reason, payload = found.groups() if found else (b"0", b"damaged", raw)
    return Quarantined(_digest(raw), queue, reason.decode(), float(at), payload)


def _digest(raw: bytes) -> str:
    return hashlib.sha1(raw).hexdigest()[:12]
