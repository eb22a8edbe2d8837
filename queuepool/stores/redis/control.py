"""The control keys: restart, pause and maintenance, where Laravel's cache keeps them, and the pools' own notices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from queuepool.errors import StoreError
from queuepool.stores.base import Control
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

_RESTART = "illuminate:queue:restart"
_PHP_TRUE = b"b:1;"
#: seconds after which a pool that published nothing is gone
NOTICE_LASTS = 30.0


class RedisControl:
    """Reads and writes them; ``cache`` is the connection of ``control_url``, ``restart_key`` its raw key.

    Laravel's cache prefix is what stands before its own name for the restart key.
    """

    def __init__(self, cache: Client, own: Client, keys: Keys, restart_key: str, connection: str) -> None:
        self._cache = cache
        self._own = own
        self._keys = keys
        self._restart_key = restart_key
        self._prefix = restart_key.removesuffix(_RESTART) if restart_key.endswith(_RESTART) else ""
        self._connection = connection

    def read(self, queues: Sequence[str]) -> Control:
        """All of them in one command, one more where they live in two databases."""
        laravels = [self._restart_key, self._all_paused, self._maintenance, *map(self._paused, queues)]
        if self._cache is self._own:
            down, *values = self._own.command("MGET", self._keys.down, *laravels)
        else:
            down, values = self._own.command("GET", self._keys.down), self._cache.command("MGET", *laravels)
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
        return int(self._cache.script("restart", [self._restart_key], []))

    def pause(self, queue: str) -> None:
        self._cache.command("SET", self._paused(queue), _PHP_TRUE)

    def resume(self, queue: str) -> bool:
        """``False`` when it was not paused."""
        return bool(self._cache.command("DEL", self._paused(queue)) == 1)

    def down(self) -> None:
        self._own.command("SET", self._keys.down, _PHP_TRUE)

    def up(self) -> bool:
        """``False`` when it was not down."""
        return bool(self._own.command("DEL", self._keys.down) == 1)

    def publish(self, pool: str, facts: Mapping[str, Any]) -> None:
        """Let any host see this pool; ``facts`` are JSON-ready."""
        notice = {**facts, "at": int(self._own.command("TIME")[0])}
        self._own.script("publish", [self._keys.pools], [pool, json.dumps(notice)])

    def withdraw(self, pool: str) -> None:
        self._own.command("HDEL", self._keys.pools, pool)

    def pools(self) -> list[dict[str, Any]]:
        """What the living pools of all hosts published last; the notices of dead ones are cleared away."""
        now = int(self._own.command("TIME")[0])
        alive = []
        for pool, text in self._own.command("HGETALL", self._keys.pools).items():
            facts = json.loads(text)
            if facts["at"] + NOTICE_LASTS >= now:
                alive.append(facts)
            else:
                with suppress(StoreError):  # who may only look leaves it to somebody else
                    self._own.command("HDEL", self._keys.pools, pool)
        return sorted(alive, key=lambda facts: (facts["host"], facts["pool"]))

    @property
    def _all_paused(self) -> str:
        return f"{self._prefix}illuminate:queues:paused"

    @property
    def _maintenance(self) -> str:
        return f"{self._prefix}illuminate:foundation:down"

    def _paused(self, queue: str) -> str:
        return f"{self._prefix}illuminate:queue:paused:{self._connection}:{queue}"


def _is_set(value: bytes | None) -> bool:
    """PHP's null and false do not count; anything else does."""
    return value is not None and value not in (b"", b"0", b"N;", b"b:0;")
