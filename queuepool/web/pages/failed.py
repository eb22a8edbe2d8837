"""Failed jobs: what they have in common, and those that fit a filter."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from queuepool.jobs.client import Queue
from queuepool.operating.job_rows import failed_row
from queuepool.operating.scopes import Scope, scope_on
from queuepool.search.facets import Facets
from queuepool.search.filters import LONGEST, text_of, values_at
from queuepool.search.found import FoundJob, plain
from queuepool.search.look import Look
from queuepool.stores.records import FailedJob, RecordKey
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.scans import COUNTED, MOST_COUNTS, Scan
from queuepool.web.shown import HIDDEN, arguments, kind_of, line_of, without_data

Facts = dict[str, Any]
#: by what all failed jobs are counted
_BY = ("error", "name", "queue")
#: arguments that may be columns
_MOST_COLUMNS = 6


def failed(desk: Desk, asked: Asked) -> Facts:
    """The failed jobs of one connection that fit, the latest first, and what they have in common."""
    link = named_or_first(desk, asked)
    gathered, names = Gathered(), list(desk.links)
    nothing: Facts = {"jobs": [], "facets": [], "total": None, "next": None, "looked_at": 0}
    facts = gathered.one(link, lambda opened: _failed(desk, asked, opened), nothing)
    return {"connection": link.name, "connections": names, **facts, **gathered.facts()}


def named_or_first(desk: Desk, asked: Asked) -> StoreLink:
    """The connection that is asked for, or the first one."""
    return desk.link(asked.text("connection") or next(iter(desk.links)))


def scope_for(desk: Desk, asked: Asked, opened: Queue) -> Scope:
    """The failed jobs of this connection, or of one queue."""
    return scope_on(desk.choice, opened, queue=asked.text("queue") or None)


def _failed(desk: Desk, asked: Asked, opened: Queue) -> Facts:
    scope, look = scope_for(desk, asked, opened), Look(opened.stores, asked.filter())
    columns = [path for path in asked.all("column") if path.strip()][:_MOST_COLUMNS]
    of = "failed", scope.name
    walk = _Walk(scope, look, desk.places.found(asked.cursor(), *of))
    facets, rows = [Facets(by) for by in _BY], list[FoundJob]()
    scan = Scan(look, COUNTED)
    for page in scan.pages(walk.pages()):
        rows += page[: asked.rows() - len(rows)]
        for job in page:
            for one in facets:
                one.add(job)
    found = facets[0].found.total()
    following = rows[-1].where if found > len(rows) else None
    last = following.key if isinstance(following, FailedJob) else walk.last if scan.is_cut else None
    return {
        "jobs": [_row(job, asked, columns) for job in rows],
        "columns": columns,
        "facets": [_facet(one, asked) for one in facets],
        "total": scope.store.count() if scope.is_whole else None,
        "found": found,
        "is_whole": not scan.is_cut,
        "looked_at": look.seen,
        "unreadable": look.closed,
        "next": desk.places.keep(json.dumps(last), *of) if last else None,
    }


def _facet(one: Facets, asked: Asked) -> Facts:
    are_kinds = one.by == "error" and asked.data != "yes"
    found = _kinds(one.found) if are_kinds else one.found
    most = found.most_common(MOST_COUNTS)
    find = [None if are_kinds else _sure_part(value) for value, _ in most]
    values = [{"value": value, "jobs": jobs, "find": part} for (value, jobs), part in zip(most, find, strict=True)]
    return {"by": one.by, "values": values, "left_out": len(found) - len(most)}


def _kinds(errors: Counter[str]) -> Counter[str]:
    kinds = Counter[str]()
    for error, jobs in errors.items():
        kinds[kind_of(error)] += jobs
    return kinds


def _sure_part(value: str) -> str | None:
    """The longest part of an error that all of its kind have: numbers and ids are left out of what they are counted by.

    A search for it finds all of them, and perhaps others, and it is no longer than a search may be. ``None`` if it
    would find anything: there is no error, or nothing but numbers.
    """
    found = max(value.split("…"), key=len).strip()[:LONGEST]
    return found if re.search(r"\w", found) else None


def _row(job: FoundJob, asked: Asked, columns: list[str]) -> Facts:
    assert isinstance(job.where, FailedJob)
    shown = arguments(plain(job.arguments), asked)
    chosen = {path: _column(job, path, asked) for path in columns}
    about = {"name": job.where.name, "tags": list(job.tags), "line": line_of(shown), "columns": chosen}
    return without_data(failed_row(job.where) | about, asked)


def _column(job: FoundJob, path: str, asked: Asked) -> str:
    if not asked.sees(path):
        return HIDDEN
    texts = (text_of(value) for value in values_at(job.arguments, path))
    return ", ".join(text for text in texts if text is not None)[:200]


class _Walk:
    """Goes through the failed jobs from a place on, and knows how far it came."""

    def __init__(self, scope: Scope, look: Look, place: str) -> None:
        self._scope = scope
        self._look = look
        self._after = RecordKey(*json.loads(place)) if place else None
        self.last: RecordKey | None = None

    def pages(self) -> Iterator[list[FoundJob]]:
        return self._look.failed(self._is_meant, math.inf, self._after)

    def _is_meant(self, record: FailedJob) -> bool:
        self.last = record.key
        return self._scope.has(record)
