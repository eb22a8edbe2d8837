"""Queues that hold jobs and that no pool serves: looked for in the whole store, but seldom."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from queuepool.errors import StoreDown, StoreError
from queuepool.stores.control import served_in
from queuepool.stores.factory import Stores

#: seconds between looks, so many times as long as a slow one took; and the most queues of one look: more take turns
_PERIOD, _SHARE, _MOST = 60.0, 50.0, 50


class _Seen(NamedTuple):
    """A queue's next job, when it was first seen there, and when last (monotonic)."""

    digest: bytes
    since: float
    at: float


class UnservedQueues:
    """For how long the next job of each such queue has stayed where it is.

    Whether a worker of Laravel serves a queue cannot be seen. But whoever serves one takes its next job: so what counts
    is for how long that has been the same one, and not how old it is.
    """

    def __init__(self, queues: Sequence[str], stores: Stores) -> None:
        self._own = {*queues, stores.settings.outcomes}
        self._stores = stores
        self._seen: dict[str, _Seen] = {}
        self._found: Mapping[str, float] | None = None
        self._look_at = 0.0

    def look(self, now: float) -> Mapping[str, float] | None:
        """Seconds by queue, as of the last look; ``None`` if that is not known. ``now`` is monotonic.

        Raises ``StoreError``.
        """
        if now >= self._look_at:
            self._look_at, self._found = now + _PERIOD, None
            began = time.monotonic()
            names = self._unserved()
            self._found = None if names is None else self._waits(names, now)
            self._look_at = now + max(_PERIOD, _SHARE * (time.monotonic() - began))
        return self._found

    def _unserved(self) -> list[str] | None:
        """The queues that are not empty, not paused, and served by no pool; ``None``: one does not say its own."""
        served = served_in(self._stores.control.pools())
        if served is None:
            return None
        names = [name for name in self._stores.queue.queues() if name not in served and name not in self._own]
        paused = self._stores.control.read(names).paused if names else frozenset[str]()
        return [name for name in names if name not in paused]

    def _waits(self, names: Sequence[str], now: float) -> dict[str, float]:
        """For how long each has had the same next job, as of when it was last looked at."""
        turn = sorted(names, key=lambda name: self._seen[name].at if name in self._seen else 0.0)[:_MOST]
        self._seen = {name: self._seen[name] for name in names if name in self._seen and name not in turn} | {
            name: _Seen(digest, self._since(name, digest, now), now) for name, digest in self._heads(turn)
        }
        return {name: seen.at - seen.since for name, seen in self._seen.items()}

    def _since(self, name: str, digest: bytes, now: float) -> float:
        before = self._seen.get(name)
        return before.since if before and before.digest == digest else now

    def _heads(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """A digest of the next job of each that has one."""
        for name in names:
            try:
                first = self._stores.queue.first(name, 1)
            except StoreDown:
                raise
            except StoreError:  # a key of the wrong type: no queue
                continue
            if first:
                yield name, blake2b(first[0], digest_size=16).digest()
