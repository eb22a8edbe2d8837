"""Check what is at the prefix of Laravel Horizon, where a pool is to be shown."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial

from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade, refusal
from queuepool.stores.horizon import MASTERS, HorizonKeys


def inspect_horizon(stores: Stores, prefix: str, what: str) -> Iterator[Finding]:
    """Who is shown there, and whether we may write there. Nothing of it keeps a pool from its work."""
    keys = stores.horizon(prefix)
    masters = list[str]()
    if words := refusal(lambda: masters.extend(keys.masters())) or next(_denied(keys, prefix), ""):
        yield Finding(Grade.WARN, what, f"the pool would not be shown at {prefix}: {words}")
        return
    horizons = [name for name in masters if not name.startswith(MASTERS)]
    if horizons:
        yield Finding(Grade.OK, what, f"at {prefix} are the masters {', '.join(masters)}")
        return
    found = f"only {', '.join(masters)}" if masters else "no masters"
    hint = "no Horizon runs with this prefix, so no dashboard shows the pool: compare `prefix` in config/horizon.php"
    yield Finding(Grade.WARN, what, f"at {prefix} are {found}: {hint}")


def _denied(keys: HorizonKeys, prefix: str) -> Iterator[str]:
    """Every command that is denied, by name; tried on keys of our own below the prefix."""
    name = f"{prefix}queuepool:check:{secrets.token_hex(6)}"
    table, ordered, names = (f"{name}:{kind}" for kind in ("hash", "ordered", "set"))
    for words in (
        ("HSET", table, "a", 1), ("HGET", table, "a"), ("HMGET", table, "a"), ("EXPIRE", table, 60),
        ("ZADD", ordered, 1, "a"), ("ZRANGEBYSCORE", ordered, 0, 1), ("ZREM", ordered, "a"),
        ("ZREMRANGEBYSCORE", ordered, 0, 1), ("SADD", names, "a"), ("EXISTS", table), ("DEL", table, ordered, names),
    ):  # fmt: skip
        if problem := refusal(partial(keys.client.command, *words)):
            yield problem
