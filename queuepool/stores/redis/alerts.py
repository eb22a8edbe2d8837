"""The keys of alerts in Redis; the contract is ``stores.alerts.AlertKeys``."""

from __future__ import annotations

import math

from queuepool.stores.alerts import Claim
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys


class RedisAlerts:
    """The keys on one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def claim(self, alert: str, owner: str, seconds: float) -> Claim:
        key = self._keys.alert(alert)
        if self._client.command("SET", key, owner, "NX", "PX", math.ceil(seconds * 1000)):
            return Claim.TAKEN
        ours = owner.encode()
        holder = self._client.script("read_value", [key], [len(ours) + 1])
        return Claim.OURS if holder == ours else Claim.OTHERS

    def release(self, alert: str, owner: str) -> bool:
        return bool(self._client.script("unlock", [self._keys.alert(alert)], [owner]) == [1])
