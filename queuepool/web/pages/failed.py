"""Failed jobs: what they have in common, those that fit a filter, and how many an action would concern."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from typing import Any

from queuepool.jobs.client import Queue
from queuepool.operating.job_rows import failed_row
from queuepool.operating.scopes import Scope, scope_on
from queuepool.search.facets import Facets
from queuepool.search.filters import text_of, values_at
from queuepool.search.found import FoundJob, plain
from queuepool.search.look import Look
from queuepool.stores.records import FailedJob, RecordKey
from queuepool.web.asked import Asked, is_masked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.guard import Refusal
from queuepool.web.pages.concerned import NONE, concerned, counted
from queuepool.web.scans import COUNTED, COUNTED_WITHIN, MOST_COUNTS, Scan
from queuepool.web.shown import arguments, line_of

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
    walk = _Walk(scope, look, asked)
    facets, rows = [Facets(by) for by in _BY], list[FoundJob]()
    scan = Scan(look, COUNTED, COUNTED_WITHIN)
    for page in scan.pages(walk.pages()):
        rows += page[: asked.rows() - len(rows)]
        for job in page:
            for one in facets:
                one.add(job)
    found = facets[0].found.total()
    following = rows[-1] if found > len(rows) else None
    cursor = _cursor(following.where.key) if following and isinstance(following.where, FailedJob) else None
    if cursor is None and scan.is_cut and walk.last:
        cursor = _cursor(walk.last)
    return {
        "jobs": [_row(job, asked, columns) for job in rows],
        "columns": columns,
        "facets": [_facet(one) for one in facets],
        "total": scope.store.count() if scope.is_whole else None,
        "found": found,
        "is_whole": not scan.is_cut,
        "looked_at": look.seen,
        "unreadable": look.closed,
        "next": cursor,
    }


def _facet(one: Facets) -> Facts:
    most = one.found.most_common(MOST_COUNTS)
    left = len(one.found) - len(most)
    values = [{"value": value, "jobs": jobs, "find": _sure_part(value)} for value, jobs in most]
    return {"by": one.by, "values": values, "left_out": left}


def _sure_part(value: str) -> str:
    """The longest part of an error that all of its kind have: numbers and ids are left out of what they are counted by.

    A search for it finds all of them, and perhaps others.
    """
    return max(value.split("…"), key=len).strip()


def _row(job: FoundJob, asked: Asked, columns: list[str]) -> Facts:
    assert isinstance(job.where, FailedJob)
    shown = arguments(plain(job.arguments), asked)
    chosen = {path: _column(job, path, asked) for path in columns}
    about = {"name": job.where.name, "tags": list(job.tags), "line": line_of(shown), "columns": chosen}
    return failed_row(job.where) | about


def _column(job: FoundJob, path: str, asked: Asked) -> str:
    if asked.data != "yes" or is_masked(path, asked.mask):
        return "•••"
    texts = (text_of(value) for value in values_at(job.arguments, path))
    return ", ".join(text for text in texts if text is not None)[:200]


class _Walk:
    """Goes through the failed jobs, and knows how far it came."""

    def __init__(self, scope: Scope, look: Look, asked: Asked, until: float = math.inf) -> None:
        self._scope = scope
        self._look = look
        self._after = _record_key(asked.cursor())
        self._until = until
        self.last: RecordKey | None = None

    def pages(self) -> Iterator[list[FoundJob]]:
        return self._look.failed(self._is_meant, self._until, self._after)

    def _is_meant(self, record: FailedJob) -> bool:
        self.last = record.key
        return self._scope.has(record)


def _cursor(key: RecordKey) -> str:
    return urlsafe_b64encode(json.dumps(key).encode()).decode()


def _record_key(cursor: str) -> RecordKey | None:
    """Raises ``Refusal`` for any other text."""
    if not cursor:
        return None
    try:
        match json.loads(urlsafe_b64decode(cursor)):
            case [str(job_id), str(mark)]:
                return RecordKey(job_id, mark)
    except (ValueError, RecursionError):
        pass
    raise Refusal(400, "after: not a cursor: begin anew without it")


def confirm(desk: Desk, asked: Asked) -> Facts:
    """How many failed jobs an action would concern: those of the ids, or all that fit; none that fail after this."""
    act, link, ids = asked.text("act"), named_or_first(desk, asked), asked.all("id")
    if act not in ("retry", "forget"):
        raise Refusal(400, "act is one of retry, forget")
    gathered = Gathered()
    facts = gathered.one(link, lambda opened: _concerned(desk, asked, opened, ids), NONE)
    return {"act": act, "connection": link.name, "ids": ids, **facts, **gathered.facts()}


def _concerned(desk: Desk, asked: Asked, opened: Queue, ids: list[str]) -> Facts:
    scope, queues = scope_for(desk, asked, opened), Counter[str]()
    until = scope.store.now()
    if ids:
        queues.update(record.queue for record in map(scope.get, dict.fromkeys(ids)) if record)
        return counted(queues, until)
    look = Look(opened.stores, asked.filter(ids=False))
    return concerned(look, scope.pages(look, until), until)
