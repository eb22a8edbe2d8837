"""The pools of all hosts, to be told what to do."""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any

from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.pools import Known, known, pool_rows
from queuepool.web.pages.queues import remarks

Facts = dict[str, Any]


def pools(desk: Desk, asked: Asked) -> Facts:
    """All that is known of each, and where a command reaches it: ``reach`` is ``None`` if none does.

    ``shared``: the connections on which several can be told at once.
    """
    stores = known(desk)
    rows = pool_rows(desk, stores)
    reached = [{**row, "reach": _reach(row, stores)} for row in rows]
    counts = Counter(row["reach"]["connection"] for row in reached if row["reach"])
    shared = [name for name, count in counts.items() if count > 1]
    return {"pools": reached, "shared": shared, **remarks(stores)}


def _reach(row: Facts, stores: Known) -> Facts | None:
    for connection, facts in stores:
        for pool in facts.value.pools if facts.value else ():
            is_it = row["kind"] == "elsewhere" and row.get("id") == pool.instance
            is_here = row["kind"] == "here" and (pool.host, pool.name) == (socket.gethostname(), row["pool"])
            if pool.instance and (is_it or is_here) and not pool.is_lost:
                return {"connection": connection, "id": pool.instance}
    return None
