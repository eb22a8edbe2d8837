"""The pools of all hosts, to be told what to do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from queuepool.operating.notices import PublishedPool
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.pool_rows import Watched, place_of, places_unread, pool_rows, watched
from queuepool.web.pages.queues import remarks

Facts = dict[str, Any]


def pools(desk: Desk, asked: Asked) -> Facts:
    """All that is known of each, and where a command reaches it: ``reach`` is ``None`` if none does.

    ``shared``: the connections on which several can be told at once.
    """
    stores = watched(desk)
    reached = [{**row, "reach": _reach(desk, row, stores)} for row in pool_rows(desk, stores)]
    counts = Counter(row["reach"]["connection"] for row in reached if row["reach"])
    shared = [name for name, count in counts.items() if count > 1]
    return {"pools": reached, "shared": shared, **remarks(stores)}


def _reach(desk: Desk, row: Facts, stores: Watched) -> Facts | None:
    """The connection and the id. Pools of several containers may have one host's name, one name and one directory."""
    if row["kind"] not in ("here", "elsewhere"):
        return None
    found = [
        {"connection": connection, "id": pool.instance}
        for connection, facts in stores
        # One of this host is reached over its own store.
        for pool in (facts.value.pools if facts.value and row.get("connection", connection) == connection else ())
        if pool.instance and not pool.is_lost and _is_it(desk, row, pool)
    ]
    is_sure = row.get("id") or len(found) == 1
    return found[0] if found and is_sure else None


def _is_it(desk: Desk, row: Facts, pool: PublishedPool) -> bool:
    """By its id; whose board is another user's, by its directory, as long as only one publishes from there."""
    if (pool.host, pool.name) != (row["host"], row["pool"]):
        return False
    if row.get("id"):
        return pool.instance == str(row["id"])
    return row["kind"] == "here" and place_of(pool) in places_unread(desk)
