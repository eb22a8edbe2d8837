"""Reads a queue's jobs in pages while workers take from its head; the contract is ``stores.contract.QueueWalk``."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol

from queuepool.stores.contract import QueueWalk, Shelf, ShelfJob
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import Keys

#: in the direction in which jobs move: one that moves on meanwhile is met again rather than missed
_ORDER: tuple[Shelf, ...] = ("delayed", "ready", "reserved")
#: the last jobs that were read, by which the next page finds its place
_ANCHORS = 8
#: read jobs that the caller may still take out together (``search.bulk``): those before them are the anchors then
_BATCH = 500
#: jobs before the expected place that are read again with each page, and at once to look for a place that has moved on
_OVERLAP, _STEP = 32, 4096
#: jobs before the place of a cursor among which it is looked for: a cursor may be old
_NEAR = 64 * _STEP
#: a lease's score: the bits below its grid are the tag of the worker (lua/include/lease.lua)
_GRID, _TAGS = 16, 131072
#: jobs of a sorted set that are read to its end: as many as there are
_ANY = 1 << 62


class RedisWalk(QueueWalk):
    """The jobs of one queue, shelf by shelf."""

    def __init__(
        self, client: RedisClient, keys: Keys, queue: str, shelves: Collection[Shelf], cursor: str = ""
    ) -> None:
        names = {"ready": keys.ready(queue), "delayed": keys.delayed(queue), "reserved": keys.reserved(queue)}
        first, state = _parsed(cursor) if cursor else ("", [])
        if first:
            shelves = [shelf for shelf in _ORDER[_ORDER.index(first) :] if shelf in shelves or shelf == first]
        self._readers = [_reader(client, names[shelf], shelf) for shelf in _ORDER if shelf in shelves]
        if first:
            self._readers[0].restore(state)
        self._all = tuple(self._readers)

    def page(self, most: int) -> list[ShelfJob]:
        while len(self._readers) > 1:
            if found := self._readers[0].page(most):
                return found
            self._readers.pop(0)
        return self._readers[0].page(most) if self._readers else []

    def unread(self, jobs: Sequence[ShelfJob]) -> None:
        if self._readers:
            self._readers[0].unread(len(jobs))

    def taken(self, jobs: Sequence[ShelfJob]) -> None:
        if self._readers:
            self._readers[0].taken(jobs)

    def cursor(self) -> str:
        return json.dumps([self._readers[0].shelf, *self._readers[0].state()]) if self._readers else ""

    def again(self) -> RedisWalk:
        walk = copy(self)
        walk._all = tuple(reader.again() for reader in self._all)
        walk._readers = list(walk._all)
        return walk


class _ShelfReader(Protocol):
    """Reads one shelf; as ``QueueWalk``."""

    shelf: Shelf

    def page(self, most: int) -> list[ShelfJob]: ...

    def unread(self, count: int) -> None: ...

    def taken(self, jobs: Sequence[ShelfJob]) -> None: ...

    def state(self) -> list[Any]: ...

    def restore(self, state: list[Any]) -> None: ...

    def again(self) -> _ShelfReader: ...


def _reader(client: RedisClient, key: str, shelf: Shelf) -> _ShelfReader:
    return _ListReader(client, key) if shelf == "ready" else _SetReader(client, key, shelf)


def _parsed(cursor: str) -> tuple[Any, list[Any]]:
    """The shelf and the state in a cursor. Raises ``ValueError``."""
    try:
        found = json.loads(cursor)
    except RecursionError as error:
        raise ValueError("not a cursor") from error
    match found:
        case ["ready", int(), int(), list(anchors)] if len(anchors) <= _ANCHORS and min(found[1:3]) >= 0:
            if all(isinstance(one, str) for one in anchors):
                return found[0], found[1:]
        case ["delayed" | "reserved", int(), float() | None as last, str(), float() | None as end, str()]:
            if found[1] >= 0 and all(one is None or math.isfinite(one) for one in (last, end)):
                return found[0], found[1:]
    raise ValueError("not a cursor")


class _ListReader:
    """The ready jobs, from the head to what was the tail at the beginning.

    Others take from the head, so every index falls meanwhile; what is given back comes to the head, so it rises again.
    The last jobs that were read show where the next one is now. If they are all gone, so is all before them: then the
    next job is at the head.
    """

    shelf: Shelf = "ready"

    def __init__(self, client: RedisClient, key: str) -> None:
        self._client = client
        self._key = key
        #: of the next job, as far as known
        self._index = 0
        #: jobs that were there at the beginning and have not been read; at most
        self._left: int | None = None
        #: digests of the last jobs that were read and are still there, as far as known: they end right before the index
        self._tail: list[str] = []
        #: the first index at which they are looked for
        self._nearest = 0

    def page(self, most: int) -> list[ShelfJob]:
        if self._left is None:
            self._left = int(self._client.command("LLEN", self._key))
        jobs = self._next(min(most, self._left)) if self._left > 0 else []
        first, self._index, self._left = self._index, self._index + len(jobs), self._left - len(jobs)
        self._tail = [*self._tail[-_BATCH - _ANCHORS :], *map(_digest, jobs)]
        return [ShelfJob(job, "ready", first + number) for number, job in enumerate(jobs)]

    def unread(self, count: int) -> None:
        self._index, self._left = self._index - count, (self._left or 0) + count
        self._tail = self._tail[: len(self._tail) - count]

    def taken(self, jobs: Iterable[ShelfJob]) -> None:
        for job in jobs:
            self._index -= job.shelf == "ready"  # all that were read are before it
            if (digest := _digest(job.payload)) in self._tail:
                self._tail.remove(digest)

    def state(self) -> list[Any]:
        return [self._index, self._left or 0, self._marks()]

    def restore(self, state: list[Any]) -> None:
        """Finds its place at once, near to where it was. Raises ``ValueError`` if it is not there any more."""
        length = int(self._client.command("LLEN", self._key))
        self._index, self._left, self._tail = min(state[0], length), min(state[1], length), state[2]
        self._nearest = max(self._index - _NEAR, 0)
        self._next(0)
        self._nearest = 0

    def again(self) -> _ListReader:
        reader = _ListReader(self._client, self._key)
        if self._left is not None:
            self._next(0)  # where its last job is now: all that lies behind it has been added since
            reader._left = self._index
        return reader

    def _marks(self) -> list[str]:
        return self._tail[-_ANCHORS:]

    def _next(self, most: int) -> list[bytes]:
        """The jobs that follow; sets the index of the first of them."""
        anchors = self._marks()
        start = max(self._index - _OVERLAP, 0) if anchors else self._index
        rows = self._read(start, self._index + most)
        if not anchors:
            return rows
        after = _after(anchors, rows, self._index - start)
        if after is None:
            place = self._found_before(anchors, start) or self._found_behind(anchors, self._index + most)
            if place is None and self._nearest:
                raise ValueError("the queue has moved on too far since")
            return self._moved_to(place or 0, self._read(place or 0, (place or 0) + most))
        jobs = rows[after : after + most]
        return self._moved_to(start + after, jobs or self._read(start + after, start + after + most))

    def _moved_to(self, index: int, jobs: list[bytes]) -> list[bytes]:
        self._index = index
        return jobs

    def _found_before(self, anchors: Sequence[str], end: int) -> int | None:
        """The index after the last of these that is before ``end``: jobs were taken from the head."""
        while end > self._nearest:
            start = max(end - _STEP, 0)
            after = _after(anchors, self._read(start, end), end - start)
            if after is not None:
                return start + after
            end = start
        return None

    def _found_behind(self, anchors: Sequence[str], start: int) -> int | None:
        """The index after the last of these from ``start`` on: many were given back to the head."""
        after = _after(anchors, self._read(start, start + _STEP), 0)
        return None if after is None else start + after

    def _read(self, start: int, end: int) -> list[bytes]:
        return list(self._client.command("LRANGE", self._key, start, end - 1)) if end > start else []


def _after(anchors: Sequence[str], rows: Sequence[bytes], expected: int) -> int | None:
    """The place in ``rows`` after the last anchor there, of equal ones the nearest to ``expected``."""
    if 0 < expected <= len(rows) and _digest(rows[expected - 1]) == anchors[-1]:
        return expected  # as nearly always: nothing has moved
    digests = [*map(_digest, rows)]
    for anchor in reversed(anchors):
        places = [place + 1 for place, digest in enumerate(digests) if digest == anchor]
        if places:
            return min(places, key=lambda place: abs(place - expected))
    return None


def _digest(job: bytes) -> str:
    return hashlib.blake2b(job, digest_size=8).hexdigest()


def reserved_jobs(client: RedisClient, key: str, most: int) -> list[ShelfJob]:
    """The first jobs that workers have reserved, by the ends of their leases; ``key``: of the reserved set."""
    return _SetReader(client, key, "reserved").page(most)


class Scored(NamedTuple):
    """A member of a sorted set; members lie in this order."""

    score: float
    member: bytes


class _SetReader:
    """Delayed or reserved jobs, by score and then by bytes.

    To the last one that was delayed at the beginning, however many come before it meanwhile. A lease that is renewed
    moves on behind all others, again and again: of those, at most as many as there were at the beginning.
    """

    def __init__(self, client: RedisClient, key: str, shelf: Shelf) -> None:
        self.shelf = shelf
        self._client = client
        self._key = key
        self._left: int | None = None
        #: as it was at the beginning
        self._first = 0
        #: the last one that is to be read, if delayed
        self._end: Scored | None = None
        #: the last one that was read, and the page, with the one before it
        self._last: Scored | None = None
        self._rows: list[Scored | None] = []

    def page(self, most: int) -> list[ShelfJob]:
        if self._left is None:
            self._left, self._end = self._bounds()
            self._first = self._left
        rows = following(self._ask, self._last, min(most, self._left)) if self._left > 0 else []
        rows = [row for row in rows if not self._end or row <= self._end]
        self._left -= len(rows)
        if rows:
            self._rows, self._last = [self._last, *rows], rows[-1]
        return [ShelfJob(row.member, self.shelf, 0, None, row.score, self._tag(row.score)) for row in rows]

    def unread(self, count: int) -> None:
        self._rows = self._rows[: len(self._rows) - count]
        self._last, self._left = self._rows[-1], (self._left or 0) + count

    def taken(self, jobs: Iterable[ShelfJob]) -> None:
        """Nothing to do: the next page begins after a score."""

    def state(self) -> list[Any]:
        return [self._left or 0, *_words_of(self._last), *_words_of(self._end)]

    def restore(self, state: list[Any]) -> None:
        self._left = self._first = state[0]
        self._last, self._end = _scored_of(*state[1:3]), _scored_of(*state[3:5])

    def again(self) -> _SetReader:
        reader = _SetReader(self._client, self._key, self.shelf)
        if self._left is not None and self.shelf == "reserved":
            reader._left = self._first
        elif self._left is not None:
            reader._left, reader._end = self._first if self._last else 0, self._last
        return reader

    def _bounds(self) -> tuple[int, Scored | None]:
        if self.shelf == "reserved":
            return int(self._ask("ZCARD")), None
        end = _scored(self._ask("ZREVRANGE", 0, 0, "WITHSCORES"))
        return (_ANY, end[0]) if end else (0, None)

    def _tag(self, score: float) -> int:
        return int(score * _GRID % 1 * _TAGS) if self.shelf == "reserved" else 0

    def _ask(self, *words: Any) -> Any:
        verb, *rest = words
        return self._client.command(verb, self._key, *rest)


def _words_of(one: Scored | None) -> tuple[float | None, str]:
    return (one.score, one.member.decode("latin-1")) if one else (None, "")


def _scored_of(score: float | None, member: str) -> Scored | None:
    return None if score is None else Scored(score, member.encode("latin-1"))


def following(ask: Callable[..., Any], last: Scored | None, most: int, *, is_down: bool = False) -> list[Scored]:
    """The members after ``last`` in a sorted set, upwards or downwards; ``last`` need not be there any more.

    ``ask`` sends a command on that set. However many members have one score, none is read that came before.
    """
    verb = "ZREVRANGE" if is_down else "ZRANGE"
    if last is None:
        return _scored(ask(verb, 0, most - 1, "WITHSCORES"))
    rank = ask("ZREVRANK" if is_down else "ZRANK", last.member)
    if rank is not None:
        rows = _scored(ask(verb, rank, rank + most, "WITHSCORES"))
        if rows[:1] == [last]:
            return rows[1:]
    while True:
        before = max(_passed(ask, last, is_down) - 1, 0)
        rows = _scored(ask(verb, before, before + most, "WITHSCORES"))
        later = [row for row in rows if _is_later(row, last, is_down)]
        is_reached = not before or (rows and rows[0] not in later[:1])  # else others have gone meanwhile
        if is_reached and (later or len(rows) <= most):  # or others have come
            return later[:most]


def _passed(ask: Callable[..., Any], last: Scored, is_down: bool) -> int:
    """How many members come no later than ``last``: found by halving, as thousands may have one score."""
    low, high = 0, int(ask("ZCARD"))
    while low < high:
        middle = (low + high) // 2
        row = _scored(ask("ZREVRANGE" if is_down else "ZRANGE", middle, middle, "WITHSCORES"))
        if row and not _is_later(row[0], last, is_down):
            low = middle + 1
        else:
            high = middle
    return low


def _is_later(row: Scored, last: Scored, is_down: bool) -> bool:
    return row < last if is_down else row > last


def _scored(words: Sequence[Any]) -> list[Scored]:
    return [Scored(float(score), member) for member, score in zip(words[::2], words[1::2], strict=True)]
