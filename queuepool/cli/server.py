"""The server of one connection: its version, what it would lose, and what we may do on it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from queuepool.cli.findings import Finding, Grade
from queuepool.client import Queue
from queuepool.config_values import masked
from queuepool.errors import StoreDown, StoreError

_OLDEST = (6, 2)
_DENIED = ("NOPERM", "no permissions", "can't run this command", "unknown command")


def inspect_server(queue: Queue, queues: Sequence[str]) -> Iterator[Finding]:
    """Raises ``StoreError`` when it does not even answer."""
    what = f"connection {queue.settings.name}"
    queue.stores.queue.client.command("PING")
    yield Finding(Grade.OK, what, f"{masked(queue.settings.url)} answers")
    yield from (Finding(grade, what, words) for grade, words in _server(queue))
    denied = list(_denied(queue, queues))
    yield from (Finding(Grade.FAIL, what, words) for words in denied)
    if not denied:
        yield Finding(Grade.OK, what, "every command that is needed is permitted")


def _server(queue: Queue) -> Iterator[tuple[Grade, str]]:
    try:
        about: Mapping[str, Any] = queue.stores.queue.client.command("INFO")
    except StoreDown:
        raise
    except StoreError as error:
        yield Grade.WARN, f"INFO is not permitted ({error}): version, persistence and eviction are unknown"
        return
    yield _version(str(about.get("redis_version", "")))
    yield _persistence(about)
    yield _eviction(str(about.get("maxmemory_policy", "")))


def _version(version: str) -> tuple[Grade, str]:
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if not numbers:
        return Grade.WARN, "the server does not say its version"
    if numbers < _OLDEST:
        return Grade.FAIL, f"version {version}: at least 6.2 is needed"
    return Grade.OK, f"version {version}"


def _persistence(about: Mapping[str, Any]) -> tuple[Grade, str]:
    if about.get("aof_enabled"):
        return Grade.OK, "appendonly yes"
    return Grade.WARN, (
        "appendonly no: a kill of Redis loses the jobs pushed since the last snapshot; set appendonly yes"
    )


def _eviction(policy: str) -> tuple[Grade, str]:
    if not policy:
        return Grade.WARN, "the server does not say its maxmemory-policy"
    if policy != "noeviction":
        return Grade.FAIL, f"maxmemory-policy {policy}: a full server would drop jobs; set noeviction"
    return Grade.OK, "maxmemory-policy noeviction"


def _denied(queue: Queue, queues: Sequence[str]) -> Iterator[str]:
    """Every right that is missing, by the command's name; what is written is written under a key of our own."""
    scratch = f"{queue.settings.prefix}queuepool:check:{secrets.token_hex(6)}"
    for words in _commands(scratch):
        yield from _attempt(queue, words)
    for words in (("DEL", f"{scratch}:text"), ("UNLINK", *(f"{scratch}:{kind}" for kind in _KINDS))):
        yield from _attempt(queue, words)
    yield from _look(queue, queues)


_KINDS = ("text", "list", "hash", "set")


def _commands(scratch: str) -> Iterator[tuple[object, ...]]:
    """All that our Lua files and stores send; each on data of its own type."""
    text, entries, table, ordered = (f"{scratch}:{kind}" for kind in _KINDS)
    yield from (("TIME",), ("SET", text, 1), ("GET", text), ("MGET", text), ("INCR", text), ("EXISTS", text))
    yield from (("EXPIRE", text, 60), ("RPUSH", entries, 1), ("LPUSH", entries, 1), ("LLEN", entries))
    yield from (("LINDEX", entries, 0), ("LRANGE", entries, 0, 1), ("LTRIM", entries, 0, 5), ("LPOS", entries, "x"))
    yield from (("LREM", entries, 1, "x"), ("PUBLISH", f"{scratch}:channel", 1))
    yield from (("LPOP", entries), ("BLPOP", entries, 0.01))
    yield from (("HSET", table, "a", 1), ("HINCRBY", table, "a", 1), ("HGET", table, "a"), ("HMGET", table, "a"))
    yield from (
        ("HGETALL", table),
        ("HEXISTS", table, "a"),
        ("HDEL", table, "a"),
        ("ZADD", ordered, 1, "a"),
        ("ZCARD", ordered),
    )
    yield from (("ZSCORE", ordered, "a"), ("ZRANGE", ordered, 0, 1), ("ZREVRANGE", ordered, 0, 1))
    yield from (("ZRANGEBYSCORE", ordered, 0, 1), ("ZREMRANGEBYRANK", ordered, 5, 6), ("ZREM", ordered, "a"))
    yield from (("EVAL", "return redis.call('get', KEYS[1])", 1, text), ("EVALSHA", "0" * 40, 0))


def _attempt(queue: Queue, words: Sequence[object]) -> Iterator[str]:
    try:
        queue.stores.queue.client.command(*words)
    except StoreDown:
        raise
    except StoreError as error:
        if "NOSCRIPT" not in str(error) and "No matching script" not in str(error):
            yield f"{words[0]} is refused: {error}"


def _look(queue: Queue, queues: Sequence[str]) -> Iterator[str]:
    """Whether the keys themselves may be read."""
    stores = queue.stores
    looks: list[tuple[str, Callable[[], object]]] = [
        *((f"queue {name}", partial(stores.queue.sizes, name)) for name in queues),
        ("the stewards' channel", partial(stores.queue.wait_for_change, queues, 0.01)),
        ("the failed store", stores.failed.count),
        ("the control keys", partial(stores.control.read, queues)),
    ]
    for what, look in looks:
        try:
            look()
        except StoreDown:
            raise
        except StoreError as error:
            yield f"{what} is refused: {error}"
