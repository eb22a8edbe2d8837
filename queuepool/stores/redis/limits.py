"""Limits in Redis; see ``stores.limits.JobLimits``. What its scripts share is in ``lua/include/limits.lua``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from queuepool.payload.lease import Lease
from queuepool.payload.limits import PlaceAsked, job_word
from queuepool.stores.contract import NewJob
from queuepool.stores.limits import Entry, KeyRecord, LimitRecord
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import BATCH_BYTES, Keys
from queuepool.stores.steps import in_steps

#: keys that one look takes, and jobs that one script pushes
_LOOKS, _PUSHED = 100, 200


class RedisLimits:
    """The limits of one connection. ``clock`` returns '' for the server's, or a test's Unix seconds as text."""

    def __init__(self, client: RedisClient, keys: Keys, clock: Callable[[], str]) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self.in_use = False

    def enter(self, lease: Lease, job_id: str, asked: Sequence[PlaceAsked]) -> Entry:
        words = [lease.receipt, lease.tag, *self._words(), lease.holder, job_word(job_id), lease.queue]
        names = [self._keys.reserved(lease.queue), self._keys.places]
        answer = int(self._client.script("enter", names, [*words, *_places(asked)]))
        return Entry(answer == 0, asked[answer - 1].key if answer > 0 else "")

    def push(self, queue: str, jobs: Sequence[NewJob]) -> bool:
        """Push these, and park at once those that could not start now."""
        keys = self._keys
        names = [keys.ready(queue), keys.notify(queue), keys.parked(queue)]
        for step in in_steps(jobs, _PUSHED, BATCH_BYTES, lambda job: len(job.payload)):
            args = [word for job in step for word in (job.payload, job.word, 4 * len(job.asked), *_places(job.asked))]
            self._client.script("push_limited", names, [*self._words(), queue, *args])
        return True

    def parked(self, queue: str) -> int:
        return int(self._client.command("HLEN", self._keys.parked(queue)))

    def sweep(self, name: str | None = None) -> float | None:
        also = [] if name is None else [name]
        due = self._client.script("sweep_limits", [self._keys.limits_due], [*self._words(), _LOOKS, *also])
        return float(due) if due else None

    def all(self) -> list[LimitRecord]:
        return [_record(name.decode(), text) for name, text in sorted(self._pairs(self._keys.limits))]

    def keys(self) -> list[KeyRecord]:
        wait = self._client.command("ZRANGE", self._keys.limits_due, 0, -1)
        hold = (key for _, keys in self._pairs(self._keys.places) for key in keys.split())
        return [self._key(key.decode()) for key in sorted({*wait, *hold})]

    def _key(self, key: str) -> KeyRecord:
        names, command = self._keys, self._client.command
        parked = [
            (
                queue.decode(),
                part.decode(),
                int(command("LLEN", names.of_limit("lane", f"{key} {part.decode()} {queue.decode()}"))),
            )
            for queue in reversed(command("LRANGE", names.of_limit("queues", key), 0, -1))
            for part in reversed(command("LRANGE", names.of_limit("ring", f"{key} {queue.decode()}"), 0, -1))
        ]
        held, granted = (int(command("ZCARD", names.of_limit(kind, key))) for kind in ("held", "granted"))
        return KeyRecord(key, held, granted, tuple(parked))

    def set(self, name: str, number: int | None) -> bool:
        text = self._client.command("HGET", self._keys.limits, name)
        if text is None:
            return False
        code, per, _ = text.decode().split(" ")
        self._client.command("HSET", self._keys.limits, name, f"{code} {per} {'' if number is None else number}")
        return True

    def declare(self, name: str, number: int, per: float) -> LimitRecord | None:
        text = self._client.command("HGET", self._keys.limits, name)
        known = _record(name, text) if text else None
        if known and (known.number, known.per) == (number, per):
            return None
        by_hand = "" if known is None or known.by_hand is None else known.by_hand
        self._client.command("HSET", self._keys.limits, name, f"{number} {per:g} {by_hand}")
        return known

    def _words(self) -> list[str]:
        return [*self._keys.beginnings, self._clock()]

    def _pairs(self, key: str) -> Iterable[tuple[bytes, bytes]]:
        flat = self._client.command("HGETALL", key)
        return flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)


def _places(asked: Sequence[PlaceAsked]) -> Iterable[Any]:
    return (word for one in asked for word in (one.key, one.part, one.number, one.per))


def _record(name: str, text: bytes) -> LimitRecord:
    number, per, by_hand = text.decode().split(" ")
    return LimitRecord(name, int(number), float(per), int(by_hand) if by_hand else None)
