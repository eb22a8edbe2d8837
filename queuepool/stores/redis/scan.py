"""Which queues there are: found by a scan of all keys, since nothing lists them."""

from __future__ import annotations

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

#: keys that the server reads in one step
_PAGE = 1000


def queues_of(client: Client, keys: Keys) -> list[str]:
    """The names of all queues that are not empty, by SCAN, page by page: KEYS would block the server."""
    found: set[str | None] = set()
    cursor = 0
    while True:
        cursor, page = client.command("SCAN", cursor, "MATCH", keys.pattern, "COUNT", _PAGE)
        found |= {keys.queue_of(key.decode("utf-8", "replace")) for key in page}
        if not int(cursor):
            return sorted(name for name in found if name is not None)
