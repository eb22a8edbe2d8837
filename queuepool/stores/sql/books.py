"""Books in Laravel's table ``cache``: a row for each text, and one that says which texts there are.

Each row is found by its whole key, so that no verb reads the table: a text's key ends in its number, and the book's own
row has the first number and the one after the last. The table's order of keys would not do: it depends on the
database's collation, and few of them can use it for names that begin alike.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select

from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.values import MAX_NOTE, MAX_TAKEN

#: most texts that one statement names, and most that a book is cleared of at once: others expire
_AT_ONCE, _MOST = 1000, 10_000
#: microseconds by which a book's numbers may be ahead of the clock with which they begin: it may have been set back
_AHEAD = 86_400 * 10**6
_SPAN, _LONGEST_SPAN = re.compile(r"([0-9]{1,16}) ([0-9]{1,16})"), 33
_log = logging.getLogger("queuepool")
#: a text's key, and the text
_Row = tuple[str, bytes]


class _Span(NamedTuple):
    """The numbers of a book's texts, ``after`` not among them; some may be missing."""

    first: int
    after: int

    @classmethod
    def of(cls, text: bytes) -> _Span | None:
        """``None`` for anything else."""
        found = _SPAN.fullmatch(text.decode("utf-8", "replace"))
        span = cls(int(found[1]), int(found[2])) if found else None
        return span if span and span.first <= span.after else None

    def last(self, count: int) -> range:
        return range(max(self.first, self.after - min(count, _MOST)), self.after)


class SqlBooks:
    """The contract is that of books in ``stores.values.Values``; each verb works in its caller's transaction.

    ``start``: how all keys of books begin; ``put`` sets a row for some seconds; ``add`` does so unless there is one.
    """

    def __init__(
        self,
        cache: Table,
        start: str,
        is_living: Callable[[Connection], ColumnElement[bool]],
        put: Callable[[Connection, str, str, float], object],
        add: Callable[[Connection, str, str, float], object],
    ) -> None:
        self._cache = cache
        self._start = start
        self._is_living = is_living
        self._put = put
        self._add = add

    def note(self, connection: Connection, book: str, text: str, most: int, lifetime: float) -> None:
        span = self._locked(connection, book, lifetime)
        first = max(span.first, span.after + 1 - most)
        self._put(connection, self._key(book, span.after), text, lifetime)
        self._put(connection, f"{self._start}{book}", f"{first} {span.after + 1}", lifetime)
        self._drop(connection, self._keys(book, range(span.first, first)[-_MOST:]))

    def notes(self, connection: Connection, book: str, count: int) -> list[bytes]:
        span = _Span.of(self._said(connection, book) or b"")
        return [text for _, text in self._texts(connection, self._keys(book, span.last(count)))] if span else []

    def take(self, connection: Connection, book: str, count: int) -> list[bytes]:
        said = self._said(connection, book, lock=True)
        if said is None:
            return []
        span, found = _Span.of(said), list[bytes]()
        if span:
            keys = self._few(connection, self._keys(book, span.last(count)))
            found = [text for _, text in self._texts(connection, keys)]
            self._drop(connection, self._keys(book, span.last(_MOST)))
        else:
            self._tell_of(book)
        self._drop(connection, [f"{self._start}{book}"])
        return found

    def drop(self, connection: Connection, book: str, text: str) -> bool:
        span, wanted = _Span.of(self._said(connection, book, lock=True) or b""), text.encode()
        rows = self._texts(connection, self._keys(book, span.last(_MOST))) if span else ()
        same = [key for key, found in rows if found == wanted][:1]
        self._drop(connection, same)
        return bool(same)

    def _locked(self, connection: Connection, book: str, lifetime: float) -> _Span:
        """The book's span; an empty one if it has none, or one that this store's clock cannot have begun.

        Its row is there first, since nothing locks a row that is not: a second writer would take its number too.
        """
        now = _microsecond(connection)
        key, value, is_living = f"{self._start}{book}", self._cache.c.value, self._is_living(connection)
        row = select(func.substr(value, 1, _LONGEST_SPAN + 1), is_living).where(self._cache.c.key == key)
        found = None
        while found is None:  # a pool that takes the book removes its row
            self._add(connection, key, f"{now} {now}", lifetime)
            found = connection.execute(row.with_for_update()).one_or_none()
        said, is_in_force = found
        span = _Span.of(bytes_of(said)) if is_in_force else None
        if span and span.after <= now + _AHEAD:
            return span
        if is_in_force:
            self._tell_of(book)
        return _Span(now, now)

    def _tell_of(self, book: str) -> None:
        """Once: it is removed, or begins anew."""
        _log.warning("the book %s in the table %s is damaged: what it had is lost", book, self._cache.name)

    def _said(self, connection: Connection, book: str, *, lock: bool = False) -> bytes | None:
        row = select(self._cache.c.value).where(
            self._cache.c.key == f"{self._start}{book}", self._is_living(connection), _length(self._cache) <= MAX_NOTE
        )
        found = connection.execute(row.with_for_update() if lock else row).scalar()
        return None if found is None else bytes_of(found)

    def _few(self, connection: Connection, keys: Sequence[str]) -> list[str]:
        """The last of these keys, as far as their texts have no more than ``MAX_TAKEN`` bytes."""
        key, size = self._cache.c.key, _length(self._cache)
        sizes: dict[str, int] = {}
        for named in _parts(keys):
            sizes |= {name: int(length) for name, length in connection.execute(select(key, size).where(key.in_(named)))}
        sound = [name for name in reversed(keys) if sizes.get(name, 0) <= MAX_NOTE]
        sums = accumulate(sizes.get(name, 0) for name in sound)
        return [name for name, total in zip(sound, sums, strict=True) if total <= MAX_TAKEN][::-1]

    def _texts(self, connection: Connection, keys: Sequence[str]) -> list[_Row]:
        """The texts that are there and not too large, in the order of the keys."""
        key, value = self._cache.c.key, self._cache.c.value
        found: dict[str, bytes] = {}
        for named in _parts(keys):
            is_sound = key.in_(named) & self._is_living(connection) & (_length(self._cache) <= MAX_NOTE)
            rows = connection.execute(select(key, value).where(is_sound))
            found |= {name: bytes_of(text) for name, text in rows}
        return [(name, found[name]) for name in keys if name in found]

    def _drop(self, connection: Connection, keys: Sequence[str]) -> None:
        for named in _parts(keys):
            connection.execute(delete(self._cache).where(self._cache.c.key.in_(named)))

    def _keys(self, book: str, numbers: Iterable[int]) -> list[str]:
        return [self._key(book, number) for number in numbers]

    def _key(self, book: str, number: int) -> str:
        return f"{self._start}{book}#{number}"


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[first : first + _AT_ONCE] for first in range(0, len(keys), _AT_ONCE))


def _length(cache: Table) -> ColumnElement[int]:
    return func.length(cache.c.value)


def _microsecond(connection: Connection) -> int:
    """The database's clock in microseconds; SQLite's has milliseconds."""
    return int(float(connection.execute(select(Clock(connection.dialect).now())).scalar_one()) * 1e6)
