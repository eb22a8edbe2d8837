"""Values in Redis: strings that expire, and hashes that are read as a whole; see ``stores.values.Values``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from queuepool.errors import StoreError
from queuepool.payload.lease import Lock, Unlock
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.control import notice_by
from queuepool.stores.locks import MAX_OWNER, HeldLock
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import Keys
from queuepool.stores.values import (
    MAX_KEPT,
    MAX_MARK,
    MAX_NOTE,
    MAX_NOTICE,
    MAX_OF_ALL,
    MAX_OF_NOTICES,
    MAX_STATE,
    MAX_TAKEN,
    MAX_VALUE,
    MOST_KEPT,
    AlertClaim,
    Due,
    Fired,
    History,
    Kept,
    Mark,
    Result,
    sound_marks,
)

#: what ``held_locks.lua`` returns as the time left of a free lock
_FREE = -2
#: buckets of the history that one request reads
_BATCH = 20


class RedisValues:
    """The values in one Redis database. Names in the cache are full keys; everything else has our prefix."""

    def __init__(self, client: RedisClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        # Not a script, which a user with only read access may not run; so long values are sent in full.
        return [value and value[:MAX_VALUE] for value in self._client.command("MGET", *names)]

    def put(self, name: str, value: bytes) -> None:
        self._client.script_in_time("put_value", [name], [value])

    def remove(self, name: str) -> bool:
        return bool(self._client.script_in_time("remove_value", [name]) == 1)

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        wait = float(self._client.script("count_use", [name, f"{name}:timer"], ["", most, seconds]))
        return wait if wait >= 0 else None

    def stamp(self, name: str) -> int:
        return int(self._client.script("restart", [name], []))

    def wake_stewards(self) -> None:
        with suppress(StoreError):  # a user who may not do so leaves them their second
            self._client.command("PUBLISH", self._keys.news, 1)

    # Notices

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        self._client.script("publish", [self._keys.pools], [pool, json.dumps({**notice, "at": self._now()})])

    def withdraw(self, pool: str) -> None:
        self._client.command("HDEL", self._keys.pools, pool)

    def notices(self, within: float) -> list[dict[str, Any]]:
        now, found = self._now(), []
        words = self._client.script("read_texts", [self._keys.pools], [MAX_NOTICE, MAX_OF_NOTICES])
        for pool, text in zip(words[::2], words[1::2], strict=True):
            notice = notice_by(text, now)
            if notice and now - notice["at"] <= within:
                found.append(notice)
            elif notice is None or now - notice["at"] > NOTICE_KEPT:
                with suppress(StoreError):  # a user with only read access leaves it to others
                    self._client.command("HDEL", self._keys.pools, pool)
        return found

    def _now(self) -> int:
        return int(self._client.command("TIME")[0])

    # Alerts' keys

    def claim_alert(self, alert: str, owner: str, seconds: float) -> AlertClaim:
        key = self._keys.alert(alert)
        if self._client.command("SET", key, owner, "NX", "PX", math.ceil(seconds * 1000)):
            return AlertClaim.TAKEN
        ours = owner.encode()
        holder = self._client.script("read_value", [key], [len(ours) + 1])
        return AlertClaim.OURS if holder == ours else AlertClaim.OTHERS

    def release_alert(self, alert: str, owner: str) -> bool:
        return bool(self._client.script("unlock", [self._keys.alert(alert)], [owner]) == [1])

    # The history: a hash for each bucket

    def keep_history(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        self._client.script("keep_history", [self._keys.history(grain, bucket)], [writer, text, int(lifetime)])

    def sweep_history(self) -> None:
        """Nothing to do: Redis removes what has expired."""

    def history(self, grain: str, buckets: range) -> History:
        texts, ignored = [], 0
        for first in range(0, len(buckets), _BATCH):
            batch = buckets[first : first + _BATCH]
            names = [self._keys.history(grain, bucket) for bucket in batch]
            left_out, *answers = self._client.script("read_history", names, [MAX_KEPT, MOST_KEPT])
            ignored += left_out
            for bucket, words in zip(batch, answers, strict=True):
                pairs = zip(words[::2], words[1::2], strict=True)
                texts += [Kept(bucket, writer.decode("utf-8", "replace"), text) for writer, text in pairs]
        return History(texts, ignored)

    # Books: a list for each

    def note(self, book: str, text: str, most: int, lifetime: float) -> None:
        self._client.script("note", [self._keys.book(book)], [text, most, math.ceil(lifetime)])

    def notes(self, book: str, count: int) -> list[bytes]:
        return self._notes(book, count, count * MAX_NOTE, "")

    def take_notes(self, book: str, count: int) -> list[bytes]:
        return self._notes(book, count, MAX_TAKEN, "take")

    def _notes(self, book: str, count: int, size: int, then: str) -> list[bytes]:
        found: list[bytes] = self._client.script("notes", [self._keys.book(book)], [count, MAX_NOTE, size, then])
        return found[::-1]

    def drop_note(self, book: str, text: str) -> bool:
        return bool(self._client.command("LREM", self._keys.book(book), 1, text) == 1)

    # Schedules' marks: one hash

    def begin(self, rules: Mapping[str, str], now: int) -> dict[str, Mark]:
        words = [word for pair in rules.items() for word in pair]
        texts = self._client.script("begin", [self._keys.schedules], [now, *words])
        return sound_marks(zip(rules, texts, strict=True))

    def fire(self, due: Due) -> Fired | None:
        names = [self._keys.schedules, self._keys.ready(due.queue), self._keys.notify(due.queue)]
        args = [due.name, due.at, due.payload]
        if due.lock:
            names.append(self._keys.lock(due.lock.name))
            args += due.lock.owner, due.lock.seconds
        answer = self._client.script("fire", names, args)
        before = Mark.from_text(answer[1]) if answer else None
        return Fired(Result(answer[0].decode()), before) if before else None

    def marks(self) -> dict[str, Mark]:
        words = self._client.script("read_texts", [self._keys.schedules], [MAX_MARK, MAX_OF_ALL])
        names = (name.decode("utf-8", "replace") for name in words[::2])
        return sound_marks(zip(names, words[1::2], strict=True))

    def forget(self, name: str) -> bool:
        return bool(self._client.command("HDEL", self._keys.schedules, name))

    # States of tracked jobs

    def state(self, job_id: str) -> bytes | None:
        found: bytes | None = self._client.script("read_value", [self._keys.state(job_id)], [MAX_STATE])
        return found

    def tracked(self, job_ids: Sequence[str]) -> set[str]:
        keys = {job_id: self._keys.state(job_id) for job_id in job_ids}
        if not keys or not self._client.command("EXISTS", *keys.values()):  # as nearly always
            return set()
        return {job_id for job_id, key in keys.items() if self._client.command("EXISTS", key)}

    def prune_states(self) -> int:
        """Nothing to do: Redis removes what has expired."""
        return 0

    # Laravel's unique locks. Source: Illuminate/Cache/RedisLock.php (13.x)

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """As ``stores.locks.Locks``, here and below."""
        if not unlocks:
            return 0
        names = [self._keys.lock(lock.name) for lock in unlocks]
        return sum(answer != 0 for answer in self._client.script("unlock", names, [lock.owner for lock in unlocks]))

    def take(self, lock: Lock) -> bool:
        return bool(self._client.script("take_lock", [self._keys.lock(lock.name)], [lock.owner, lock.seconds]) == 1)

    def held(self) -> Iterator[HeldLock]:
        for page in self._client.scan(self._keys.locks_pattern(PREFIX)):
            yield from self._read(sorted(key.decode("utf-8", "replace") for key in page))

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        found = self._client.command("MGET", *map(self._keys.lock, names)) if names else []
        held = ((name, owner) for name, owner in zip(names, found, strict=True) if owner is not None)
        return {name: owner[:MAX_OWNER].decode("utf-8", "replace") for name, owner in held}

    def all_keys(self) -> list[str]:
        return [key.decode("utf-8", "replace") for page in self._client.scan(f"*{PREFIX}*") for key in page]

    def _read(self, keys: Sequence[str]) -> Iterator[HeldLock]:
        words = self._client.script("held_locks", keys, [MAX_OWNER]) if keys else []
        for key, owner, left in zip(keys, words[::2], words[1::2], strict=True):
            if left != _FREE:
                seconds = None if left < 0 else left / 1000
                yield HeldLock(self._keys.lock_of(key), owner.decode("utf-8", "replace"), seconds)
