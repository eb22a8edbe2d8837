"""The pools of all hosts: of this host by their boards, of any other by their last notices."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from queuepool.board.health import Health
from queuepool.board.overview import PoolOverview
from queuepool.operating.notices import PublishedPool, names_of_pools
from queuepool.web.boards import LocalReading
from queuepool.web.connections import StoreFacts
from queuepool.web.desk import Desk
from queuepool.web.threads import Snapshot

Facts = dict[str, Any]
#: a connection's name, and what is known of it
Watched = list[tuple[str, Snapshot[StoreFacts]]]


def watched(desk: Desk) -> Watched:
    """What the stores tell, as new as they let us know it without waiting; all of them are asked at once."""
    links = list(desk.links.values())
    for link in links:
        link.facts(0.0)
    patience = max(link.patience(is_lost=desk.boards.knows_lost(link.settings)) for link in links)
    until = time.monotonic() + patience
    return [(link.name, _aged(link.facts(max(until - time.monotonic(), 0.0)))) for link in links]


def _aged(facts: Snapshot[StoreFacts]) -> Snapshot[StoreFacts]:
    """As nothing is heard of pools while their store cannot be read, they become lost meanwhile.

    A store that is only spared, as reading it takes long, makes none lost.
    """
    if not (facts.value and facts.problem):
        return facts
    pools = tuple(replace(pool, age=pool.age + facts.age) for pool in facts.value.pools)
    return replace(facts, value=replace(facts.value, pools=pools))


def pool_rows(desk: Desk, stores: Watched) -> list[Facts]:
    """All pools: those of this host first, then by name; those that were stopped within the hour last."""
    here = places_here(desk)
    others = [pool for _, facts in stores if facts.value for pool in facts.value.pools if place_of(pool) not in here]
    names = names_of_pools(others)
    left = [pool for _, facts in stores if facts.value for pool in facts.value.left]
    # One that does not run here is of interest only if nothing else is known of it: the dashboard may be elsewhere.
    elsewhere = {*(pool.name for pool in others), *(pool.name for pool in left)}
    rows = [_local_row(one) for one in desk.boards.readings() if one.runs or one.settings.name not in elsewhere]
    seen = set[str]()
    for pool in others:
        if pool.instance not in seen:  # several connections may lead to one store
            rows.append(_published_row(pool, names.get(pool.instance, f"{pool.host}/{pool.name}")))
            seen |= {pool.instance} - {""}
    return rows + [{**one.to_json(), "name": f"{one.host}/{one.name}", "kind": "left"} for one in left]


def places_here(desk: Desk) -> set[tuple[str, str]]:
    """Where the pools are that run here: their boards are newer than their notices."""
    return {(socket.gethostname(), str(one.runtime.path)) for one in desk.boards.readings() if one.runs}


def places_unread(desk: Desk) -> set[tuple[str, str]]:
    """Where the pools are whose boards cannot be read: another user's."""
    return {(socket.gethostname(), str(one.runtime.path)) for one in desk.boards.readings() if one.reading is None}


def place_of(pool: PublishedPool) -> tuple[str, str]:
    """Its host, and its directory there."""
    return pool.host, str(pool.facts.get("runtime_directory"))


def _local_row(one: LocalReading) -> Facts:
    name = one.settings.name
    place = {"pool": name, "name": name, "host": socket.gethostname(), "connection": one.settings.connection.name}
    if one.reading is None:
        words = [{"kind": "unreadable", "text": one.problem}]
        return {
            **place,
            "kind": "here",
            "state": "unknown",
            "is_well": False,
            "needs_attention": True,
            "troubles": words,
            "workers": None,
        }
    running = one.reading.running
    place["id"] = running.instance if running else ""
    rates = one.reading.pace.rates
    per_minute = {
        "done_per_minute": round(rates[0] * 60, 1) if rates else None,
        "failed_per_minute": round(rates[1] * 60, 1) if rates else None,
    }
    facts = _overview_facts(running.overview) if running else {"workers": None}
    return {**place, "kind": "here", **facts, **_health_facts(one.reading.health), **per_minute, "notice_age": None}


def _published_row(pool: PublishedPool, name: str) -> Facts:
    place = {"pool": pool.name, "name": name, "host": pool.host, "id": pool.instance, "queues": list(pool.queues)}
    age = round(pool.age, 1)
    if pool.overview is None or pool.health is None:
        words = [{"kind": "damaged", "text": "its notice is damaged"}]
        return {
            **place,
            "kind": "elsewhere",
            "state": "unknown",
            "is_well": False,
            "needs_attention": True,
            "troubles": words,
            "workers": None,
        }
    rates = {key: _number(pool.facts.get(key)) for key in ("done_per_minute", "failed_per_minute")}
    facts = {**_overview_facts(pool.overview), **_health_facts(pool.health)}
    return {**place, "kind": "lost" if pool.is_lost else "elsewhere", **facts, **rates, "notice_age": age}


def _overview_facts(pool: PoolOverview) -> Facts:
    live = [one for one in pool.processes if one.role == "worker" and one.state != "dead"]
    return {
        "workers": pool.workers,
        "live": len(live),
        "busy": pool.busy,
        "done": pool.done,
        "failed": pool.failed,
        "since": pool.since,
        "outdated": pool.outdated,
        "boot_problem": pool.boot_problem,
        "store_lost": pool.store_lost,
        "paused": list(pool.paused),
        "scaling": pool.scaling.words if pool.scaling else None,
        "memory": sum(one.memory or 0 for one in pool.processes),
    }


def _health_facts(health: Health) -> Facts:
    """With whether something needs attention beside the alerts, which are shown by themselves."""
    others = [trouble for trouble in health.troubles if trouble.kind != "alert"]
    return {**health.to_json(), "needs_attention": not health.is_well and bool(others)}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e12 else None


def overviews(desk: Desk, stores: Watched) -> Iterator[tuple[str, PoolOverview]]:
    """The overview of each pool that runs, by its name for people."""
    here = places_here(desk)
    for one in desk.boards.readings():
        if one.reading and one.reading.running:
            yield one.settings.name, one.reading.running.overview
    for _, facts in stores:
        for pool in facts.value.pools if facts.value else ():
            if pool.overview and not pool.is_lost and place_of(pool) not in here:
                yield f"{pool.host}/{pool.name}", pool.overview
