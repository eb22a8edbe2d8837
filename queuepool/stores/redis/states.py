"""The states of tracked jobs in Redis, a string for each; the contract is ``stores.states.JobStates``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queuepool.payload.ending import Lock, StateRecord
from queuepool.payload.lease import Lease
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.wire import batches, whole
from queuepool.stores.states import MAX_STATE


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

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        names, args = [], []
        for lease, state in zip(leases, states, strict=True):
            names += [self._keys.reserved(lease.queue), self._keys.state(state.job_id)]
            args += [lease.receipt, lease.tag, state.text, whole(state.seconds)]
        self._client.script("show", names, args)

    def get(self, job_id: str) -> bytes | None:
        found: bytes | None = self._client.script("read_value", [self._keys.state(job_id)], [MAX_STATE])
        return found

    def prune(self) -> int:
        """Nothing to do: Redis removes what has expired."""
        return 0
