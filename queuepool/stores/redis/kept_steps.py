"""The kept steps in Redis: a hash for each job, which expires; see ``stores.kept_steps.KeptSteps``."""

from __future__ import annotations

from collections.abc import Mapping

from queuepool.payload.lease import Lease
from queuepool.stores.kept_steps import STEPS_LAST
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import Keys, whole


class RedisKeptSteps:
    """The kept steps of one connection."""

    def __init__(self, client: RedisClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def of_job(self, job_id: str) -> dict[str, bytes]:
        found = self._client.command("HGETALL", self._keys.steps(job_id))
        return {name.decode("utf-8", "replace"): value for name, value in found.items()}

    def keep(self, lease: Lease, job_id: str, values: Mapping[str, bytes]) -> bool:
        names = [self._keys.reserved(lease.queue), self._keys.steps(job_id)]
        words = [word for pair in values.items() for word in pair]
        return bool(self._client.script("step", names, [lease.receipt, lease.tag, whole(STEPS_LAST), *words]) == 1)

    def forget(self, job_id: str, name: str) -> bool:
        return bool(self._client.command("HDEL", self._keys.steps(job_id), name))
