"""The control keys: restart, pause and maintenance, where Laravel's cache keeps them, and the pools' own notices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from queuepool.stores.contract import Control

_RESTART = "illuminate:queue:restart"
_PHP_TRUE = b"b:1;"

#: seconds between two looks at the control keys
PERIOD = 1.0


class ControlReader(Protocol):
    """The part of a store that holds the control keys."""

    def read(self, queues: Sequence[str]) -> Control: ...


class Cache(Protocol):
    """Named values as Laravel's cache keeps them in a store, and the pools' notices beside them."""

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        """Their values in PHP's serialization, where Redis keeps numbers plain; ``None`` for what is not there."""

    def put(self, name: str, value: bytes) -> None:
        """Until it is removed."""

    def remove(self, name: str) -> bool:
        """``False`` when it was not there."""

    def stamp(self, name: str) -> int:
        """Set it to the store's current second, or to one more than it was; gives it."""

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        """Keep a pool's notice for ``NOTICE_LASTS``, with the store's current second as ``at``."""

    def withdraw(self, pool: str) -> None: ...

    def notices(self) -> list[bytes]:
        """The living ones, JSON; others are cleared away."""


class ControlKeys:
    """Reads and writes them; ``cache`` is what ``control_url`` leads to, ``restart_key`` its raw key.

    Laravel's cache prefix is what stands before its own name for the restart key. ``down``: the name of our own
    maintenance mode, on the ``own`` shelf.
    """

    def __init__(self, cache: Cache, own: Cache, down: str, restart_key: str, connection: str) -> None:
        self._cache = cache
        self._own = own
        self._down = down
        self._restart_key = restart_key
        self._prefix = prefix_of(restart_key)
        self._connection = connection

    def read(self, queues: Sequence[str]) -> Control:
        """All of them in one question, one more where they live in two places."""
        laravels = [self._restart_key, self._all_paused, self._maintenance, *map(self._paused, queues)]
        if self._cache is self._own:
            down, *values = self._own.get([self._down, *laravels])
        else:
            (down,), values = self._own.get([self._down]), self._cache.get(laravels)
        restart, everything, maintenance, *paused = values
        return Control(
            restart=None if restart is None else restart.decode("utf-8", "replace"),
            paused=frozenset(
                queue for queue, value in zip(queues, paused, strict=True) if _is_set(everything) or _is_set(value)
            ),
            down=_is_set(maintenance) or _is_set(down),
        )

    def restart(self) -> int:
        """Tell every worker of every host to make room for a fresh one; gives the stamp."""
        return self._cache.stamp(self._restart_key)

    def pause(self, queue: str) -> None:
        self._cache.put(self._paused(queue), _PHP_TRUE)

    def resume(self, queue: str) -> bool:
        """``False`` when it was not paused."""
        return self._cache.remove(self._paused(queue))

    def down(self) -> None:
        self._own.put(self._down, _PHP_TRUE)

    def up(self) -> bool:
        """``False`` when it was not down."""
        return self._own.remove(self._down)

    def publish(self, pool: str, facts: Mapping[str, Any]) -> None:
        """Let any host see this pool; ``facts`` are JSON-ready."""
        self._own.publish(pool, facts)

    def withdraw(self, pool: str) -> None:
        self._own.withdraw(pool)

    def pools(self) -> list[dict[str, Any]]:
        """What the living pools of all hosts published last."""
        return sorted(map(json.loads, self._own.notices()), key=lambda facts: (facts["host"], facts["pool"]))

    @property
    def _all_paused(self) -> str:
        return f"{self._prefix}illuminate:queues:paused"

    @property
    def _maintenance(self) -> str:
        return f"{self._prefix}illuminate:foundation:down"

    def _paused(self, queue: str) -> str:
        return f"{self._prefix}illuminate:queue:paused:{self._connection}:{queue}"


def prefix_of(restart_key: str) -> str:
    """Laravel's cache prefix, if the key ends as Laravel's does."""
    return restart_key.removesuffix(_RESTART) if restart_key.endswith(_RESTART) else ""


def _is_set(value: bytes | None) -> bool:
    """PHP's null and false do not count; anything else does."""
    return value is not None and value not in (b"", b"0", b"N;", b"b:0;", b"i:0;")
