"""All queues, and what is in one of them."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from queuepool.config.values import queue as checked_queue
from queuepool.jobs.client import Queue
from queuepool.search.facets import Facets
from queuepool.search.found import FoundJob
from queuepool.search.look import SHELVES, Look, QueueLook
from queuepool.stores.contract import Shelf
from queuepool.web.asked import FILTERS, Asked
from queuepool.web.connections import MeasuredQueue, StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.guard import Refusal
from queuepool.web.pages.pool_rows import Watched, watched
from queuepool.web.scans import COUNTED, MOST_COUNTS, Scan
from queuepool.web.shown import shown_job

Facts = dict[str, Any]
#: ready jobs a second from which a queue counts as growing or shrinking
_MOVES = 0.05
#: of a queue whose jobs are not read
_NO_JOBS: Facts = {"jobs": [], "counts": [], "looked_at": 0, "next": None}


def queues(desk: Desk, asked: Asked) -> Facts:
    """The queues of all connections, those with the longest wait first."""
    stores = watched(desk)
    return {"queues": size_rows(desk, stores), **remarks(stores)}


def remarks(stores: Watched) -> Facts:
    """What is unknown, left out or odd in the stores; and how old what is known may be."""
    several = len(stores) > 1
    problems = [f"connection {name}: {facts.problem}" for name, facts in stores if facts.problem]
    notes = [
        f"{f'connection {name}: ' if several else ''}{words.removeprefix('note: ').removeprefix('warn: ')}"
        for name, facts in stores
        if facts.value
        for words in facts.value.remarks
    ]
    old = [round(facts.age) for _, facts in stores if facts.value and (facts.age > 30.0 or facts.problem)]
    return {"problems": problems, "remarks": notes, "measured_ago": max(old, default=None)}


def size_rows(desk: Desk, stores: Watched) -> list[Facts]:
    """One row for each queue, the longest wait first; while a store is away, with what pools of this host know."""
    paces, rows = _paces(desk), list[Facts]()
    for name, facts in stores:
        measured = facts.value.queues if facts.value else ()
        found = {one.name: _row(name, one, paces.get((name, one.name), {})) for one in measured}
        if facts.problem or not facts.value:
            found |= _from_boards(desk, name, found, time.time() - facts.age if facts.value else 0.0)
        rows += found.values()
    return sorted(rows, key=lambda row: (-(row["oldest"] or 0.0), -row["ready"], row["connection"], row["queue"]))


def _row(connection: str, one: MeasuredQueue, pace: Facts) -> Facts:
    sizes, growth = one.sizes, pace.get("growth")
    empty_in = sizes.ready / -growth if sizes.ready and growth is not None and growth < -_MOVES else None
    return {
        "connection": connection,
        "queue": one.name,
        "ready": sizes.ready,
        "is_at_least": sizes.is_at_least,
        "delayed": sizes.delayed,
        "reserved": sizes.reserved,
        "quarantined": sizes.quarantined,
        "parked": one.parked,
        "oldest": one.oldest,
        "overdue": round(sizes.overdue, 1),
        "growth_per_minute": None if growth is None else round(growth * 60, 1),
        "empty_in": None if empty_in is None else round(empty_in),
        "ended_per_minute": pace.get("ended"),
        **one.mark._asdict(),
    }


def _paces(desk: Desk) -> dict[tuple[str, str], Facts]:
    """What pools of this host have seen of each queue in the last minute."""
    found: dict[tuple[str, str], Facts] = {}
    for local in desk.boards.readings():
        if local.reading is None:
            continue
        name, pace = local.settings.connection.name, local.reading.pace
        for queue, growth in (pace.growth or {}).items():
            found.setdefault((name, queue), {})["growth"] = growth
        ended = Counter[str]()
        for (queue, _), counts in (pace.recent or {}).items():
            ended[queue] += counts.ended
        for queue, count in ended.items():
            row = found.setdefault((name, queue), {})
            row["ended"] = row.get("ended", 0) + count
    return found


#: what pools do not measure, or only beside their stores
_UNKNOWN: Facts = {
    "growth_per_minute": None, "empty_in": None, "ended_per_minute": None, "served": True, "paused_since": None,
    "paused_by": None,
}  # fmt: skip


def _from_boards(desk: Desk, connection: str, known_rows: dict[str, Facts], since: float) -> dict[str, Facts]:
    """What the pools of this host have measured after ``since``, in Unix seconds, by queue."""
    rows: dict[str, Facts] = {}
    for local in desk.boards.readings():
        if local.settings.connection.name != connection or local.reading is None:
            continue
        for queue, facts in local.reading.counts.queues.items():
            if facts.measured_at > since:
                rows[queue] = {
                    **_UNKNOWN, **known_rows.get(queue, {}),
                    "connection": connection, "queue": queue, "ready": facts.ready, "is_at_least": facts.is_at_least,
                    "delayed": facts.delayed, "reserved": facts.reserved, "quarantined": facts.quarantined,
                    "parked": facts.parked,
                    "oldest": round(facts.oldest, 1), "overdue": round(facts.overdue, 1), "paused": facts.paused,
                }  # fmt: skip
    return rows


def queue(desk: Desk, asked: Asked) -> Facts:
    """One queue: its sizes, and its jobs on one shelf that fit the filter, a page of them.

    Of a renewal the sizes alone, of what everybody watches.
    """
    (link, name), shelf, gathered = named(desk, asked), shelf_of(asked), Gathered()
    found: Facts = _NO_JOBS
    if not asked.is_renewal:
        found = gathered.one(link, lambda opened: _jobs(desk, asked, opened, (link.name, name, shelf)), _NO_JOBS)
    stores = watched(desk)
    rows = size_rows(desk, stores)
    row = next((one for one in rows if (one["connection"], one["queue"]) == (link.name, name)), None)
    facts = {"connection": link.name, "queue": name, "state": shelf, "sizes": row, **found, **gathered.facts()}
    if asked.is_renewal:
        facts |= {"problems": remarks([one for one in stores if one[0] == link.name])["problems"]}
    if found is not _NO_JOBS:
        facts |= _counts(link, asked, name, shelf)
        is_known = row or facts["jobs"] or name in link.choice.queues(link.settings)  # it may not be measured yet
        facts |= {} if is_known else {"status": 404}
    return facts


def waiting_shelf(asked: Asked) -> Shelf:
    """The shelf that an action is about: what a worker has reserved is left to it."""
    found = shelf_of(asked)
    if found == "reserved":
        raise Refusal(400, "state is one of ready, delayed: a worker has the reserved ones")
    return found


def named(desk: Desk, asked: Asked) -> tuple[StoreLink, str]:
    """The connection and the queue of the path. Raises ``Refusal``."""
    try:
        return desk.link(asked.parts["connection"]), checked_queue(asked.parts["queue"])
    except ValueError as error:
        raise Refusal(404, f"there is no such queue: {error}") from error


def shelf_of(asked: Asked) -> Shelf:
    """The shelf that is asked for. Raises ``Refusal``."""
    found = asked.text("state") or "ready"
    for shelf in SHELVES:
        if shelf == found:
            return shelf
    raise Refusal(400, f"state is one of {', '.join(SHELVES)}")


def _jobs(desk: Desk, asked: Asked, opened: Queue, of: tuple[str, str, Shelf]) -> Facts:
    (_, queue, shelf), look = of, Look(opened.stores, asked.filter())
    rows, following = _rows(look, _opened(look, queue, shelf, desk.places.found(asked.cursor(), *of)), asked.rows())
    shown = [shown_job(job, asked) for job in rows]
    after = desk.places.keep(following, *of) if following else None
    return {"jobs": shown, "looked_at": look.seen, "unreadable": look.closed, "next": after}


def _counts(link: StoreLink, asked: Asked, queue: str, shelf: Shelf) -> Facts:
    """How many there are of each kind, of the first ones: read once for all who look at the same."""
    by = asked.countable("by") or "name"
    filters = tuple((name, tuple(asked.all(name))) for name in FILTERS)
    found = link.counted((queue, shelf, by, filters), lambda opened: _counted(asked, opened, queue, shelf, by)).value
    return found or {"by": by, "counts": [], "counted": 0, "is_whole": True}


def _counted(asked: Asked, opened: Queue, queue: str, shelf: Shelf, by: str) -> Facts:
    look = Look(opened.stores, asked.filter())
    facets, scan = Facets(by), Scan(look, COUNTED)
    for page in scan.pages(look.waiting(queue, (shelf,)).pages()):
        for job in page:
            facets.add(job)
    counts = [{"value": value, "jobs": jobs} for value, jobs in facets.found.most_common(MOST_COUNTS)]
    return {"by": by, "counts": counts, "counted": look.seen, "is_whole": not scan.is_cut}


def _rows(look: Look, walk: QueueLook, most: int) -> tuple[list[FoundJob], str | None]:
    """At most so many jobs, and the cursor with which the search goes on; ``None`` at the end."""
    rows, scan, cursor = list[FoundJob](), Scan(look), ""
    for page in scan.pages(walk.pages()):
        room = most - len(rows)
        rows += page[:room]
        if len(page) > room:
            return rows, walk.cursor_after(rows[-1]) if room else cursor
        cursor = walk.cursor()
    return rows, cursor if scan.is_cut else None


def _opened(look: Look, queue: str, shelf: Shelf, place: str) -> QueueLook:
    try:
        return look.waiting(queue, (shelf,), place)
    except ValueError as error:
        raise Refusal(400, f"after: {error}: begin anew without it") from error
