"""Check the server of one connection: its version, which jobs it could lose, and our permissions."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from queuepool.config.urls import has_password, is_cluster, masked, nodes_of, options_of, scheme_of
from queuepool.errors import StoreError, StoreFull
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.factory import Stores, keys_of
from queuepool.stores.finding import Finding, Grade, refusal
from queuepool.stores.redis.check_replicas import inspect_replicas
from queuepool.stores.redis.client import examine
from queuepool.stores.redis.sentinel_check import inspect_primary, inspect_sentinels

_OLDEST = (6, 2)
#: the share of maxmemory above which a server is nearly full
_NEARLY = 0.9
_MB = 1024 * 1024
_HERE = ("localhost", "127.0.0.1", "::1")


def inspect_server(
    stores: Stores, queues: Sequence[str], kept: Sequence[str] = (), horizons: Mapping[str, str] = {}
) -> Iterator[Finding]:
    """The findings about the server. Raises ``StoreError`` when it does not answer at all.

    ``kept``: the queues whose attempts are kept; ``horizons``: the prefix of Horizon's keys for each pool shown there.
    """
    what = f"connection {stores.settings.name}"
    yield from inspect_sentinels(stores, what)
    stores.client.command("PING")
    yield Finding(Grade.OK, what, f"{masked(stores.settings.url)} answers")
    if _is_unencrypted(stores.settings.url):
        yield Finding(Grade.WARN, what, "the password and every job cross the network unencrypted: use rediss://")
    if _shows_sentinels_password(stores.settings.url):
        words = "the sentinels' password crosses the network unencrypted: leave out sentinel_tls=0"
        yield Finding(Grade.WARN, what, words)
    yield from (Finding(grade, what, words) for grade, words in _server(stores, queues))
    denied, denied_by_hand = list(_denied(stores, queues)), list(_denied_by_hand(stores))
    yield from (Finding(Grade.FAIL, what, words) for words in denied)
    yield from (Finding(Grade.WARN, what, words) for words in _unrecorded(stores, kept))
    if not denied:
        yield Finding(Grade.OK, what, "every needed command is permitted")
    if denied_by_hand:
        words = (
            "enough for a pool, but not for failed, retry, clear …: "
            f"the user may not run {', '.join(denied_by_hand)} (ACL)"
        )
        yield Finding(Grade.WARN, what, words)
    for pool, prefix in horizons.items():
        from queuepool.stores.redis.check_horizon import inspect_horizon  # imported here: few pools are shown there

        yield from inspect_horizon(stores, prefix, f"pool {pool} horizon")


def _is_unencrypted(url: str) -> bool:
    is_plain = scheme_of(url) in ("redis", "redis+cluster", "redis+sentinel")
    return has_password(url) and is_plain and _is_elsewhere(url)


def _shows_sentinels_password(url: str) -> bool:
    options = options_of(url)
    return options.get("sentinel_tls") == "0" and "sentinel_password" in options and _is_elsewhere(url)


def _is_elsewhere(url: str) -> bool:
    return any(host not in _HERE for host, _ in nodes_of(url))


def _server(stores: Stores, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    about: dict[str, Any] = {}
    if is_cluster(stores.settings.url):
        from queuepool.stores.redis.check_cluster import inspect_cluster  # imported here: few connections are to one

        yield from inspect_cluster(stores, queues)
    words = refusal(lambda: about.update(stores.client.command("INFO")))
    if words:
        yield Grade.WARN, f"version, persistence and eviction are unknown: {words}"
        yield from _room(stores, about)
        yield from inspect_replicas(stores)
        return
    if not is_cluster(stores.settings.url):
        examine(str(about.get("redis_mode") or about.get("server_mode", "")))
    yield _version(str(about.get("redis_version", "")), str(about.get("valkey_version", "")))
    yield _persistence(about)
    yield _eviction(str(about.get("maxmemory_policy", "")))
    yield from _room(stores, about)
    yield from inspect_primary(stores, about)
    yield from inspect_replicas(stores)


def _version(version: str, valkeys: str) -> tuple[Grade, str]:
    """Valkey calls itself the Redis that it is compatible with, too."""
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if not numbers:
        return Grade.WARN, "the server does not report its version"
    if numbers < _OLDEST:
        return Grade.FAIL, f"version {version}: at least 6.2 is needed"
    return Grade.OK, f"version {valkeys} of Valkey" if valkeys else f"version {version}"


def _persistence(about: Mapping[str, Any]) -> tuple[Grade, str]:
    if about.get("aof_enabled"):
        return Grade.OK, "appendonly yes"
    return Grade.WARN, (
        "appendonly no: a crash of Redis loses the jobs pushed since the last snapshot; set appendonly yes"
    )


def _eviction(policy: str) -> tuple[Grade, str]:
    if not policy:
        return Grade.WARN, "the server does not report its maxmemory-policy"
    if policy != "noeviction":
        return Grade.FAIL, f"maxmemory-policy {policy}: a full server would drop jobs; set noeviction"
    return Grade.OK, "maxmemory-policy noeviction"


def _room(stores: Stores, about: Mapping[str, Any]) -> Iterator[tuple[Grade, str]]:
    """Whether there is room for new jobs."""
    used, most = int(about.get("used_memory", 0)), int(about.get("maxmemory", 0))
    numbers = f": {used / _MB:.1f} of {most / _MB:.1f} MB (maxmemory) are used" if most else ""
    try:
        stores.queue.ask_for_room()
    except StoreFull:
        remedy = "raise maxmemory, or let pools work off the jobs"
        yield Grade.FAIL, f"the server is full and refuses new jobs{numbers}; {remedy}"
    except StoreError:
        return  # the user may not ask, which is reported elsewhere
    else:
        if used > _NEARLY * most > 0:
            yield Grade.WARN, f"the server is nearly full{numbers}; once full, it refuses new jobs"


def _denied(stores: Stores, queues: Sequence[str]) -> Iterator[str]:
    """Every permission that a worker lacks, by name; the attempts write only to our own keys."""
    scratch = _scratch(stores)
    for words in _commands_of_workers(f"{keys_of(stores.settings).news}check", *scratch):
        yield from _attempt(stores, words)
    yield from _attempt(stores, ("DEL", *scratch))
    yield from _unreadable(stores, queues)


def _denied_by_hand(stores: Stores) -> Iterator[str]:
    """The further commands that people need for inspection and repair, but may not run."""
    scratch = _scratch(stores)
    for words in (*_commands_by_hand(*scratch), ("UNLINK", *scratch)):
        if any(_attempt(stores, words)):
            yield repr(str(words[0]).lower())
    locks = keys_of(stores.settings).lock(PREFIX)
    if any(_attempt(stores, ("DEL", f"{locks}check:{secrets.token_hex(6)}"))):
        yield f"'del' on {locks}*"


def _scratch(stores: Stores) -> list[str]:
    name = f"{keys_of(stores.settings).beginnings[0]}check:{secrets.token_hex(6)}"
    return [f"{name}:{kind}" for kind in ("text", "list", "hash", "set")]


def _commands_of_workers(
    channel: str, text: str, entries: str, table: str, ordered: str
) -> Iterator[tuple[object, ...]]:
    """Every command that a pool runs, in our Lua files or directly, each on data of its type."""
    yield from (("TIME",), ("SET", text, 1), ("GET", text), ("MGET", text), ("EXISTS", text), ("EXPIRE", text, 60))
    yield from (("RPUSH", entries, 1), ("LPUSH", entries, 1), ("LLEN", entries), ("LINDEX", entries, 0))
    yield from (("LRANGE", entries, 0, 0), ("LTRIM", entries, 0, 5), ("BLPOP", entries, 0.01), ("PUBLISH", channel, 1))
    yield from (("HSET", table, "a", 1), ("HINCRBY", table, "a", 1), ("HMGET", table, "a"), ("HDEL", table, "a"))
    yield ("HEXISTS", table, "a")
    yield from (("ZADD", ordered, 1, "a"), ("ZCARD", ordered), ("ZSCORE", ordered, "a"))
    yield from (("ZRANGE", ordered, 0, 1), ("ZRANGEBYSCORE", ordered, 0, 1), ("ZREMRANGEBYRANK", ordered, 5, 6))
    yield from (("ZREMRANGEBYSCORE", ordered, 5, 6), ("ZREM", ordered, "a"))
    yield from (("EVAL", "return 1", 1, text), ("EVALSHA", "0" * 40, 0))


def _commands_by_hand(text: str, entries: str, table: str, ordered: str) -> Iterator[tuple[object, ...]]:
    yield from (("RPUSH", entries, 1), ("LSET", entries, 0, 1), ("LPOS", entries, "x"), ("LREM", entries, 1, "x"))
    yield from (("HGET", table, "a"), ("HGETALL", table), ("ZREVRANGE", ordered, 0, 1))
    yield from (("ZRANK", ordered, "a"), ("ZREVRANK", ordered, "a"))
    yield from (("HLEN", table), ("HKEYS", table), ("HSTRLEN", table, "a"))


def _attempt(stores: Stores, words: Sequence[object]) -> Iterator[str]:
    try:
        problem = refusal(partial(stores.client.command, *words))
    except StoreFull:
        return  # not about permissions: ``_room`` reports it
    if problem and "NOSCRIPT" not in problem and "No matching script" not in problem:
        yield problem if "(ACL)" in problem else f"{words[0]} is refused: {problem}"


def _unrecorded(stores: Stores, queues: Sequence[str]) -> Iterator[str]:
    """Every queue whose attempts cannot be recorded, and why: nothing else suffers from it."""
    for queue in queues:
        if words := refusal(partial(next, stores.attempts.of_job(queue, "-"), None)):
            yield f"keep_done records nothing of queue {queue}: {words}"


def _unreadable(stores: Stores, queues: Sequence[str]) -> Iterator[str]:
    """Every store whose own keys may not be read, and why."""
    reads: list[tuple[str, Callable[[], object]]] = [
        *((f"queue {name}", partial(stores.queue.sizes, name)) for name in queues),
        ("the stewards' channel", partial(stores.queue.wait_for_change, queues, 0.01)),
        ("the failed store", stores.failed.count),
        ("the control keys", partial(stores.control.read, queues)),
        *(("the lock store", partial(locks.owners, [PREFIX])) for _, locks in stores.laravel_locks),
    ]
    for what, read in reads:
        if words := refusal(read):
            yield f"{what} is refused: {words}"
