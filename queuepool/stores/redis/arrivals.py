"""Jobs that come from another store, in Redis; the contract is ``stores.arrivals.Arrivals``."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from queuepool.stores.arrivals import FORGOTTEN_AFTER, KNOWN_FOR, Arrival
from queuepool.stores.contract import NewJob
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import Keys, whole


class RedisArrivals:
    """What became of each job is a key of its own, which expires."""

    def __init__(self, client: RedisClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def place(self) -> str:
        return str(self._client.script("place", [self._keys.place], [secrets.token_hex(16)]).decode())

    def admit(self, queue: str, job: NewJob, due: float | None, number: str, until: float) -> Arrival:
        keys = self._keys
        job_id, text, seconds = job.state or ("", b"", 0.0)
        names = [keys.ready(queue), keys.notify(queue), keys.delayed(queue), keys.state(job_id), keys.arrival(number)]
        args = [job.payload, due or 0, keys.channel(queue), text, whole(seconds), whole(KNOWN_FOR), until]
        return Arrival(self._client.script("admit", names, args).decode())

    def refuse(self, number: str) -> Arrival:
        return Arrival(self._client.script("refuse", [self._keys.arrival(number)], [whole(KNOWN_FOR)]).decode())

    def forget(self, numbers: Sequence[str]) -> None:
        self._client.script("forget", [*map(self._keys.arrival, numbers)], [whole(FORGOTTEN_AFTER)])

    def sweep(self) -> None:
        """Nothing to do: the server removes what has expired."""
