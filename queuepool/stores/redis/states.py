"""The states of tracked jobs in Redis, a string for each; the contract is ``stores.states.JobStates``."""

from __future__ import annotations

from collections.abc import Sequence

from queuepool.payload.ending import StateRecord
from queuepool.payload.lease import Lease
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.wire import whole
from queuepool.stores.states import MAX_STATE


class RedisStates:
    """The states of one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

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
