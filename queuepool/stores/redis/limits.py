"""Limits in Redis; see ``stores.limits.JobLimits``. What its scripts share is in ``lua/include/limits.lua``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from queuepool.errors import StoreDenied
from queuepool.payload.lease import Lease
from queuepool.payload.limits import PlaceAsked, holding, job_word
from queuepool.stores.contract import NewJob
from queuepool.stores.limits import (
    MOST_BEFORE,
    MOST_KEYS,
    MOST_LINES,
    Admission,
    KeyRecord,
    LimitLine,
    LimitRecord,
    ParkedJob,
    PlaceRecord,
)
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.scripts import RENEW_PLACES, ScriptCall
from queuepool.stores.redis.walk import reserved_jobs
from queuepool.stores.redis.wire import BATCH_BYTES, Keys, with_places
from queuepool.stores.steps import in_steps

#: keys that one look takes, jobs that one script pushes, and parked ones that one call reads
_LOOKS, _PUSHED, _SCANNED = 100, 200, 500
#: reserved jobs of a queue among which those that hold places are looked for
_RESERVED = 500

#: seconds between looks at keys at which no job waits: what is held there may be a lost host's
_TIDY = 600.0
#: seconds for which a push does not park after that was denied
_DENIED = 60.0


class RedisLimits:
    """The limits of one connection. ``clock`` returns '' for the server's, or a test's Unix seconds as text."""

    park_behind = None
    end_with_reserve = False

    def __init__(self, client: RedisClient, keys: Keys, clock: Callable[[], str]) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self.in_use = False
        #: when to look at such keys (monotonic)
        self._tidy_at = time.monotonic() + _TIDY
        #: until when pushes leave it to workers to park (monotonic)
        self._denied_until = 0.0

    def enter(self, lease: Lease, job_id: str, asked: Sequence[PlaceAsked], start: str = "") -> Admission:
        start = start or secrets.token_hex(4)
        words = [lease.receipt, lease.tag, *self._words(), lease.holder, job_word(job_id), lease.queue, start]
        names = [self._keys.reserved(lease.queue), self._keys.places]
        answer = int(self._client.script("enter", names, [*words, *_places(asked)]))
        return Admission(answer == 0, asked[answer - 1].key if answer > 0 else "")

    def renewing(self, leases: Sequence[Lease], name: str, keys: Sequence[str], args: Sequence[Any]) -> ScriptCall:
        """The script that renews these leases, made to renew the places that they hold."""
        if not self.in_use:
            return name, keys, args
        return with_places(RENEW_PLACES, [*map(holding, leases)], self._keys, self._clock(), name, keys, args)

    def push(self, queue: str, jobs: Sequence[NewJob]) -> bool:
        """Push these, and park at once those that could not start now.

        A user who may not do that, like one made before there were limits, leaves it to workers.
        """
        for step in in_steps(jobs, _PUSHED, BATCH_BYTES, lambda job: len(job.payload)):
            if time.monotonic() < self._denied_until or not self._push_limited(queue, step):
                names = [self._keys.ready(queue), self._keys.notify(queue)]
                self._client.script("push", names, [job.payload for job in step])
        return True

    def _push_limited(self, queue: str, jobs: Sequence[NewJob]) -> bool:
        keys = self._keys
        names = [keys.ready(queue), keys.notify(queue), keys.parked(queue)]
        args = [word for job in jobs for word in (job.payload, job.word, 4 * len(job.asked), *_places(job.asked))]
        try:
            self._client.script("push_limited", names, [*self._words(), queue, *args])
        except StoreDenied:  # before anything is written: it begins with what only this needs
            self._denied_until = time.monotonic() + _DENIED
            return False
        return True

    def parked(self, queue: str) -> int:
        return int(self._client.command("HLEN", self._keys.parked(queue)))

    def find(self, queue: str, job_id: str) -> ParkedJob | None:
        return next((self._with_place(queue, *row) for row in self._of_job(queue, job_id)), None)

    def pages(self, queue: str) -> Iterator[list[ParkedJob]]:
        for page in self._scan(queue) if self.parked(queue) else ():
            yield [ParkedJob(text.partition(b"\n")[2], number=int(number)) for number, text in page]

    def _with_place(self, queue: str, number: bytes, text: bytes) -> ParkedJob:
        head, _, raw = text.partition(b"\n")
        _, *words = head.decode().split(" ")
        for key, part in zip(words[::2], words[1::2], strict=True):
            lane = self._keys.of_limit("lane", f"{key} {part} {queue}")
            numbers = self._client.command("LRANGE", lane, 0, MOST_BEFORE - 1)
            if number in numbers or len(words) == 2:
                return ParkedJob(raw, None, key, numbers.index(number) if number in numbers else MOST_BEFORE)
        return ParkedJob(raw)

    def unpark(self, queue: str, job_id: str = "", delay: float = 0.0) -> int:
        pages = [[int(number) for number, _ in self._of_job(queue, job_id)]] if job_id else self._numbers(queue)
        return sum(self.unpark_these(queue, page, delay) for page in pages if page)

    def unpark_these(self, queue: str, numbers: Sequence[int], delay: float) -> int:
        keys = self._keys
        names = [keys.parked(queue), keys.ready(queue), keys.notify(queue), keys.delayed(queue)]
        return int(self._client.script("unpark", names, [self._clock(), delay, *numbers]))

    def _of_job(self, queue: str, job_id: str) -> Iterator[tuple[bytes, bytes]]:
        word = job_word(job_id).encode()
        found = (row for page in self._scan(queue) for row in page if row[1].startswith(word))
        return found if self.parked(queue) else iter(())

    def _numbers(self, queue: str) -> Iterator[list[int]]:
        """Of those that were parked when this began, in their order as far as one page shows it."""
        last = int(self._client.command("GET", self._keys.last_parked) or 0)
        for page in self._scan(queue):
            yield sorted(number for number in (int(digits) for digits, _ in page) if number <= last)

    def _scan(self, queue: str) -> Iterator[list[tuple[bytes, bytes]]]:
        """The parked jobs of a queue with their numbers."""
        cursor = b"0"
        while True:
            cursor, flat = self._client.command("HSCAN", self._keys.parked(queue), cursor, "COUNT", _SCANNED)
            yield list(flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True))
            if int(cursor) == 0:
                return

    def sweep(self, name: str | None = None) -> float | None:
        also, is_whole = [] if name is None else [name], time.monotonic() >= self._tidy_at
        args = [*self._words(), _LOOKS, int(is_whole), *also]
        due = self._client.script("sweep_limits", [self._keys.limits_due], args)
        if is_whole:
            self._tidy_at = time.monotonic() + _TIDY
        return float(due) if due else None

    def all(self) -> list[LimitRecord]:
        return [_record(name.decode(), text) for name, text in sorted(self._pairs(self._keys.limits))]

    def by_key(self, name: str = "", most: int = MOST_KEYS, lines: int = MOST_LINES) -> list[KeyRecord]:
        names = [self._keys.limits_due, self._keys.places]
        return sorted(map(_key, self._client.script("limit_keys", names, [*self._words(), name, most, lines])))

    def holders(self, keys: Sequence[str], queues: Sequence[str], most: int) -> list[PlaceRecord]:
        flat = self._client.script("limit_holders", [self._keys.places], [*self._words(), most, *keys])
        jobs = self._reserved(queues) if flat else {}
        rows = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        return [PlaceRecord(key.decode(), float(at), *jobs.get(name.decode(), ())) for key, name, at in rows]

    def _reserved(self, queues: Sequence[str]) -> dict[str, tuple[str, bytes]]:
        """What workers have reserved, by the name under which it may hold places."""
        return {
            holding(Lease(queue, job.payload, job.tag)).holder: (queue, job.payload)
            for queue in queues
            for job in reserved_jobs(self._client, self._keys.reserved(queue), _RESERVED)
        }

    def parked_job(self, queue: str, number: int) -> bytes | None:
        [text] = self._client.command("HMGET", self._keys.parked(queue), number)
        return text.partition(b"\n")[2] if text else None

    def set(self, name: str, number: int | None) -> bool:
        return self._change(name, by_hand="" if number is None else number) is not None

    def declare(self, name: str, number: int, per: float) -> LimitRecord | None:
        known = self._change(name, f"{number} {per!r}")
        return known if known and (known.number, known.per) != (number, per) else None

    def _change(self, name: str, code: str = "", by_hand: int | str = "as it is") -> LimitRecord | None:
        """Returns what was known before."""
        text = self._client.script("set_limit", [self._keys.limits], [name, code, by_hand])
        return _record(name, text) if text else None

    def _words(self) -> list[str]:
        return [*self._keys.beginnings, self._clock()]

    def _pairs(self, key: str) -> Iterable[tuple[bytes, bytes]]:
        flat = self._client.command("HGETALL", key)
        return flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)


def _places(asked: Sequence[PlaceAsked]) -> Iterable[Any]:
    return (word for one in asked for word in (one.key, one.part, one.number, one.per))


def _key(row: Sequence[Any]) -> KeyRecord:
    key, held, granted, is_cut, *words = row
    lines = zip(words[::4], words[1::4], words[2::4], words[3::4], strict=True)
    parked = (LimitLine(queue.decode(), part.decode(), count, int(first)) for queue, part, count, first in lines)
    return KeyRecord(key.decode(), held, granted, tuple(parked), bool(is_cut))


def _record(name: str, text: bytes) -> LimitRecord:
    number, per, by_hand = text.decode().split(" ")
    return LimitRecord(name, int(number), float(per), int(by_hand) if by_hand else None)
