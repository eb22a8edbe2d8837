"""The alerts that are raised: what is wrong and since when, where to look first, and what would raise one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from queuepool.config.alerts import AlertSettings
from queuepool.top.layout import duration
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.pool_rows import watched
from queuepool.web.pages.queues import remarks, size_rows
from queuepool.web.pages.raised import alert_rows

Facts = dict[str, Any]


class Advice(NamedTuple):
    """What a kind of alert watches, what to do first, and on which page; ``{queue}`` is that of the alert's queue."""

    watches: str
    first: str
    page: str


#: in the order of docs/alerts.md, which says more
ADVICE: Mapping[str, Advice] = MappingProxyType({
    "wait": Advice(
        "the next job of a queue has been ready", "Look at what its workers run; add workers, or pause the queue",
        "{queue}",
    ),
    "overdue": Advice("a delayed job has been due", "Is a pool of this queue running, with its store?", "/pools"),
    "unserved": Advice(
        "no pool serves a queue", "Start its pool, or move its jobs to the queue that was meant", "{queue}"
    ),
    "failures": Advice("share of attempts that fail for good", "See what they have in common", "/failed"),
    "running": Advice("a job has run", "Show its stack; cancel it, and give it a timeout", "/running"),
    "failed": Advice("failed jobs that are kept", "Retry what was mended, forget the rest", "/failed"),
    "quarantine": Advice("payloads in quarantine", "See the reasons; nothing there is lost", "/quarantine"),
    "crashes": Advice("workers that crash within 5 minutes", "See which jobs crash them", "/failed"),
    "failed_flows": Advice("flows that fail within 5 minutes", "See what has failed, then retry the flow", "/flows"),
    "stalled": Advice("no job of a flow has begun or ended", "See what it waits for; retry or cancel it", "/flows"),
    "parked": Advice(
        "a job waits for a place of a limit", "See who holds the places; set another number", "/limits"
    ),
    "unused": Advice(
        "a limit has a free place, and jobs wait", "Is a pool running that has this limit in its code?", "/limits"
    ),
    "lost": Advice("another pool is silent", "Its jobs begin again when their leases end; bring it back", "/pools"),
    "store": Advice("the store is away", "Bring the server back: the pools go on by themselves", "/pools"),
    "store_full": Advice("the store is full", "Make room: the pools go on with what is stored", "/queues"),
    "boot": Advice("the newest code does not become ready", "See why; put the old code back, or mend it", "/pools"),
    "paused": Advice("a queue or a pool is paused", "Ask who has paused it, then continue", "/queues"),
})  # fmt: skip


def alerts(desk: Desk, asked: Asked) -> Facts:
    """Those that any pool has raised, the oldest first, and the limits of the configuration."""
    stores = watched(desk)
    queues = size_rows(desk, stores)
    places = _queue_pages(queues)
    rows = [row | _advised(row, places) for row in alert_rows(desk, asked, stores, queues)]
    return {"alerts": rows, "limits": list(_limits(desk)), **remarks(stores)}


def _queue_pages(queues: list[Facts]) -> dict[str, str]:
    """The page of each queue, by its name; that of all queues for a name that several connections have."""
    pages: dict[str, str] = {}
    for row in queues:
        own = f"/queues/{quote(row['connection'], safe='')}/{quote(row['queue'], safe='')}"
        pages[row["queue"]] = "/queues" if row["queue"] in pages else own
    return pages


def _advised(row: Facts, places: Mapping[str, str]) -> Facts:
    found = ADVICE.get(row["kind"])
    if found is None:  # a pool of a later version
        return {"first": None, "page": None}
    return {"first": found.first, "page": found.page.replace("{queue}", places.get(row["subject"], "/queues"))}


def _limits(desk: Desk) -> Iterator[Facts]:
    """A row for each kind that is watched; none if there is no section of alerts."""
    settings = [pool.alerts for pool in desk.config.pools if pool.alerts]
    if not settings:
        return
    for kind, advice in ADVICE.items():
        if words := _limit_words(settings, kind):
            yield {"kind": kind, "watches": advice.watches, "limit": words}


def _limit_words(settings: list[AlertSettings], kind: str) -> str:
    if kind == "wait":
        pairs = dict.fromkeys(pair for one in settings for pair in one.wait)
        return ", ".join(f"{queue}: {duration(limit)}" if queue else duration(limit) for queue, limit in pairs if limit)
    limit = getattr(settings[0], kind)
    if not limit:
        return ""
    if kind == "failures":
        return f"{limit:.0%}"
    return str(limit) if kind in ("failed", "quarantine", "crashes", "failed_flows") else duration(limit)
