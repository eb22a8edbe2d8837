"""Which queues and locks there are: found by a scan of all keys, since nothing lists them."""

from __future__ import annotations

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

#: keys that the server reads in one step
_PAGE = 1000


def queues_of(client: Client, keys: Keys) -> list[str]:
    """The names of all queues that are not empty."""
    found = {keys.queue_of(key.decode("utf-8", "replace")) for key in scanned(client, keys.pattern)}
    return sorted(name for name in found if name is not None)


def scanned(client: Client, pattern: str) -> set[bytes]:
    """All keys of this pattern, by SCAN, page by page: KEYS would block the server."""
    found: set[bytes] = set()
    cursor = 0
    while True:
        cursor, page = client.command("SCAN", cursor, "MATCH", pattern, "COUNT", _PAGE)
        found |= set(page)
        if not int(cursor):
            return found
