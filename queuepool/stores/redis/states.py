"""The states of tracked jobs in Redis, a string for each; the contract is ``stores.states.JobStates``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queuepool.payload.ending import Lock, StateRecord
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.wire import batches, whole


class RedisStates:
    """The states of one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def push(
        self,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None = None,
    ) -> bool:
        rest = iter(states)
        return all(self._push(queue, batch, delay, [next(rest) for _ in batch], lock) for batch in batches(payloads))

    def _push(
        self, queue: str, payloads: Sequence[bytes], delay: float, states: Sequence[StateRecord], lock: Lock | None
    ) -> bool:
        keys = self._keys
        names = [keys.ready(queue), keys.notify(queue), keys.delayed(queue)]
        names += [keys.state(state.job_id) for state in states]
        args: list[Any] = ["", delay, keys.channel(queue), whole(states[0].seconds), len(payloads), *payloads]
        args += [state.text for state in states]
        if lock:
            names.append(keys.lock(lock.name))
            args += [lock.owner, lock.seconds]
        return bool(self._client.script("push_tracked", names, args) == 1)
