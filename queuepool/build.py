"""How things fit together: the only place that turns settings into working parts, and that names the drivers."""

from __future__ import annotations

from queuepool.settings import ConnectionSettings
from queuepool.stores.redis.client import PATIENCE as PATIENCE
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.control import RedisControl
from queuepool.stores.redis.failed import RedisFailed
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.quarantine import RedisQuarantine
from queuepool.stores.redis.queue import RedisQueue


class Stores:
    """Everything that one connection's settings lead to; nothing is sent before the first verb.

    ``patience``: seconds after which a silent server counts as gone.
    """

    def __init__(self, settings: ConnectionSettings, *, shared: bool = False, patience: float = PATIENCE) -> None:
        keys = Keys(settings.prefix)
        self._own = Client(settings.url, longest_wait=settings.block_for, shared=shared, patience=patience)
        control = settings.control_url
        self._cache = Client(control, shared=shared, patience=patience) if control else self._own
        self.queue = RedisQueue(self._own, keys, settings.retry_after, failed=settings.failed != "null")
        self.failed = RedisFailed(self._own, keys)
        self.quarantine = RedisQuarantine(self._own, keys)
        self.control = RedisControl(self._cache, self._own, keys, settings.restart_key, settings.name)

    def close(self) -> None:
        self._own.close()
        self._cache.close()
