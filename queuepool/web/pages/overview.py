"""The first page: what is wrong, then the pools, then the queues."""

from __future__ import annotations

from typing import Any

from queuepool.web.asked import Asked
from queuepool.web.connections import PATIENCE, RANGES, StoreLink
from queuepool.web.desk import Desk
from queuepool.web.pages.history import past
from queuepool.web.pages.pool_rows import Watched, pool_rows, watched
from queuepool.web.pages.queues import remarks, size_rows
from queuepool.web.pages.raised import alert_rows

Facts = dict[str, Any]
#: queues that the first page shows
_MOST_QUEUES = 15


def overview(desk: Desk, asked: Asked) -> Facts:
    """Alerts that are raised, the state in a sentence, pools and queues."""
    stores = watched(desk)
    pools, queues = pool_rows(desk, stores), size_rows(desk, stores)
    alerts = alert_rows(desk, asked, stores, queues)
    return {
        "alerts": alerts,
        "sentence": _sentence(stores, pools, queues, alerts),
        "totals": _totals(pools, queues, stores),
        "pools": pools,
        "queues": queues[:_MOST_QUEUES],
        "histories": [_last_hour(desk.links[name], bool(facts.problem)) for name, facts in stores],
        "queues_left_out": max(len(queues) - _MOST_QUEUES, 0),
        **remarks(stores),
    }


def _last_hour(link: StoreLink, is_away: bool) -> Facts:
    found = past(link, next(iter(RANGES)), patience=0.0 if is_away else PATIENCE)
    return {"connection": link.name, "charts": found["charts"]}


def _totals(pools: list[Facts], queues: list[Facts], stores: Watched) -> Facts:
    running = [pool for pool in pools if pool["kind"] in ("here", "elsewhere") and pool.get("workers") is not None]
    failed = [facts.value.failed for _, facts in stores if facts.value and facts.value.failed is not None]
    return {
        "pools": len(running),
        "workers": sum(pool["workers"] for pool in running),
        "live": sum(pool["live"] for pool in running),
        "busy": sum(pool["busy"] for pool in running),
        "ready": sum(queue["ready"] for queue in queues),
        "is_at_least": any(queue["is_at_least"] for queue in queues),
        "delayed": sum(queue["delayed"] for queue in queues),
        "quarantined": sum(queue["quarantined"] for queue in queues),
        "oldest": max((queue["oldest"] for queue in queues if queue["oldest"]), default=None),
        "done_per_minute": _sum(pool.get("done_per_minute") for pool in running),
        "failed_per_minute": _sum(pool.get("failed_per_minute") for pool in running),
        "failed": sum(failed) if failed else None,
    }


def _sum(numbers: Any) -> float | None:
    known_numbers = [number for number in numbers if number is not None]
    return round(sum(known_numbers), 1) if known_numbers else None


def _sentence(stores: Watched, pools: list[Facts], queues: list[Facts], alerts: list[Facts]) -> str:
    """How it is, for who looks for a second."""
    unwell = [pool["name"] for pool in pools if pool["kind"] != "left" and pool["needs_attention"]]
    unserved = [queue["queue"] for queue in queues if queue["served"] is False and queue["ready"]]
    parts = [
        _silent([name for name, facts in stores if facts.problem]),
        _some(len(alerts), "alert is raised", "alerts are raised"),
        _named(unwell, "pool", "needs", "need", "attention"),
        _named(unserved, "queue", "is", "are", "served by no pool"),
    ]
    said = [part for part in parts if part]
    if said:
        words = "; ".join(said)
        return f"{words[0].upper()}{words[1:]}."
    return "All pools are well." if any(pool["kind"] != "left" for pool in pools) else "No pool is known."


def _silent(connections: list[str]) -> str:
    if not connections:
        return ""
    of, does = ("store of connection", "does") if len(connections) == 1 else ("stores of connections", "do")
    return f"the {of} {', '.join(connections)} {does} not answer"


def _some(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}" if number else ""


def _named(names: list[str], noun: str, one: str, several: str, rest: str) -> str:
    if not names:
        return ""
    if len(names) > 3:
        return f"{len(names)} {noun}s {several} {rest}"
    return f"{noun}{'s' if len(names) > 1 else ''} {', '.join(names)} {several if len(names) > 1 else one} {rest}"
