"""Drops what a queue holds, with the unique locks of its jobs: step by step, so that no other client waits for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queuepool.stores.locks import Finder, LocksOf
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

#: the most that one step reads: jobs, and bytes (a page more)
_JOBS, _BYTES = 1000, 1_000_000


def clear(client: Client, keys: Keys, locks_of: LocksOf, queue: str, finder: Finder) -> int:
    """Drop as many jobs as there are at the start: more may come faster than they are dropped."""
    names = [key(queue) for key in (keys.ready, keys.delayed, keys.reserved, keys.notify)]
    most, dropped = _JOBS, 0
    while True:
        args = [min(_JOBS, most - dropped), _BYTES, *finder.marks]
        there, free, *held = client.script_in_time("clear", names, args)
        most = there if not dropped else most
        dropped += int(free) + _drop(client, keys, locks_of, names, held, finder)
        if dropped >= most or not (free or held):
            return dropped


def _drop(
    client: Client, keys: Keys, locks_of: LocksOf, names: Sequence[str], held: Sequence[Any], finder: Finder
) -> int:
    """Drop these jobs, each a key's number and its bytes, each with its locks."""
    locks, args = [], []
    for number, job in zip(held[::2], held[1::2], strict=True):
        unlocks = locks_of.here(finder.locks_of(job))
        locks += [keys.lock(lock.name) for lock in unlocks]
        args += [number, job, len(unlocks), *(lock.owner for lock in unlocks)]
    return int(client.script_in_time("drop_held", [*names, *locks], args)) if args else 0
