"""What pages have led to lately, each under a key: what is long ago is forgotten."""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import Generic, TypeVar

from queuepool.web.guard import Refusal

T = TypeVar("T")
#: places that are remembered, and their bytes: one may hold a payload
_MOST_PLACES, _MOST_BYTES = 20_000, 32 * 1024 * 1024


class Remembered(Generic[T]):
    """At most so many things of so many bytes together; what was asked for longest ago goes first. Safe for threads."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, value: T, size: int, key: str = "") -> str:
        """Remember it; returns the key, without one a new one that nobody can guess."""
        key = key or secrets.token_urlsafe(12)
        with self._lock:
            _, before = self._known.pop(key, (value, 0))
            self._known[key] = value, size
            self._bytes += size - before
            while len(self._known) > self._most or (self._bytes > self._most_bytes and len(self._known) > 1):
                _, (_, gone) = self._known.popitem(last=False)
                self._bytes -= gone
        return key

    def found(self, key: str) -> T | None:
        """What has this key; ``None`` if nothing has, or it was long ago."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]


class ListPlaces:
    """Where lists go on. An address has only a key: a place may hold a payload, and forged ones would cost much."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._kept = Remembered[tuple[tuple[str, ...], str]](_MOST_PLACES, _MOST_BYTES)

    def keep(self, place: str, *of: str) -> str:
        """The key of a place in the list ``of`` something; the same place has the same key."""
        text = json.dumps([*of, place]).encode()
        key = blake2b(text, key=self._secret, digest_size=12).hexdigest()
        return self._kept.keep((of, place), len(text), key)

    def found(self, key: str, *of: str) -> str:
        """The place with this key; empty for none. Raises ``Refusal`` for one of another list, or of long ago."""
        if not key:
            return ""
        found = self._kept.found(key)
        if found is None or found[0] != of:
            raise Refusal(
                400, "after: this place of the list is not known here, or not any more: begin anew without it"
            )
        return found[1]
