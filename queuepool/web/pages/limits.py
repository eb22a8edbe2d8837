"""Limits: all of them, and one with those that hold its places and those that wait."""

from __future__ import annotations

from contextlib import suppress
from heapq import nlargest
from typing import Any

from queuepool.board.shown_pools import RunningJob, running_jobs
from queuepool.errors import StoreDenied, StoreDown, TableMissing
from queuepool.jobs.client import Queue
from queuepool.operating.limits import holder_rows, key_row, part_of, sum_row, waiters
from queuepool.search.running import pools_of
from queuepool.stores.limits import KeyRecord, LimitSum, sums_of
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.pages.failed import named_or_first
from queuepool.web.shown import HIDDEN

Facts = dict[str, Any]
#: most limits in the list; and of one its keys, its lines, and those that wait and that hold places
_MOST, _MOST_KEYS, _MOST_LINES, _MOST_WAITERS, _MOST_HOLDERS = 200, 50, 50, 10, 100
#: keys of which places are read
_MOST_READ = 20


def limits(desk: Desk, asked: Asked) -> Facts:
    """The limits of one connection, those at which most jobs wait first."""
    link, gathered = named_or_first(desk, asked), Gathered()
    nothing: Facts = {"limits": [], "left_out": 0}
    facts = gathered.one(link, lambda opened: _once(link, ("limits",), _all), nothing)
    return {"connection": link.name, "connections": list(desk.links), **facts, **gathered.facts()}


def _once(link: StoreLink, key: tuple[object, ...], look: Any) -> Facts:
    """Once within a moment for all who ask."""
    found = link.counted(key, look)
    if found.value is None or found.problem:
        raise StoreDown(found.problem or "no answer yet")
    facts: Facts = found.value
    return facts


def _all(opened: Queue) -> Facts:
    sums = sorted(_sums(opened), key=lambda one: (-one.parked, -one.held, one.limit.name))
    return {"limits": [sum_row(opened.stores, one) for one in sums[:_MOST]], "left_out": max(len(sums) - _MOST, 0)}


def _sums(opened: Queue, name: str = "") -> list[LimitSum]:
    """Nothing if the database was made before there were limits."""
    store = opened.stores.limits
    with suppress(TableMissing):
        known = [one for one in store.all() if name in ("", one.name)]
        return sums_of(known, store.by_key(name) if known else [])
    return []


def one_limit(desk: Desk, asked: Asked) -> Facts:
    """One limit: who holds its places, how many wait in which lines, and which jobs wait the longest."""
    link, name, gathered = desk.link(asked.parts["connection"]), asked.parts["name"], Gathered()
    nothing: Facts = {"row": None, "keys": [], "lines": [], "waiters": [], "holders": [], "left_out": 0}

    def look(opened: Queue) -> Facts:
        found = _sums(opened, name)
        return _one(desk, link, opened, found[0]) if found else nothing

    found = gathered.one(link, lambda _: _once(link, ("limit", name), look), nothing)
    facts = {"connection": link.name, "limit": name, **_without_data(found, asked), **gathered.facts()}
    return facts if found["row"] or facts["status"] == 503 else {**facts, "status": 404}


def _one(desk: Desk, link: StoreLink, opened: Queue, one: LimitSum) -> Facts:
    stores, lines = opened.stores, [(key.key, line) for key in one.keys for line in key.parked]
    keys = nlargest(_MOST_KEYS, one.keys, key=lambda key: (_parked(key), key.held))
    longest = nlargest(_MOST_LINES, lines, key=lambda pair: pair[1].jobs)
    held = [key.key for key in keys if key.held][:_MOST_READ]
    places = stores.limits.holders(held, link.queues(opened), _MOST_HOLDERS) if held else []
    return {
        "row": sum_row(stores, one),
        "keys": [key_row(key) for key in keys],
        "lines": [{"key": key, "queue": x.queue, "part": part_of(x), "parked": x.jobs} for key, x in longest],
        "waiters": waiters(stores, [line for _, line in lines], _MOST_WAITERS),
        "holders": [*holder_rows(stores, places[:_MOST_HOLDERS], _running(desk, link, opened))],
        "left_out": max(len(one.keys) - _MOST_KEYS, 0),
    }


def _parked(key: KeyRecord) -> int:
    return sum(line.jobs for line in key.parked)


def _running(desk: Desk, link: StoreLink, opened: Queue) -> dict[str, RunningJob]:
    """The jobs that workers run, by their ids; those of this host alone, if the notices cannot be read."""
    found = []
    with suppress(StoreDenied):
        for pool in pools_of(desk.boards.runtimes_of(link.settings), opened.stores):
            found.append(pool)
    return dict(running_jobs(found))


def _without_data(facts: Facts, asked: Asked) -> Facts:
    """If no values of arguments are shown, neither are keys and partitions, which are made of some."""
    if asked.data == "yes":
        return facts
    return {
        **facts,
        **{name: [_hidden(row) for row in facts[name]] for name in ("keys", "lines", "waiters", "holders")},
    }


def _hidden(row: Facts) -> Facts:
    key = row.get("key")
    hidden = {"key": key and key.partition("=")[0] + (f"={HIDDEN}" if "=" in key else "")} if "key" in row else {}
    return {**row, **hidden, **({"part": row["part"] and HIDDEN} if "part" in row else {})}
