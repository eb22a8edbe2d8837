"""Lists of jobs as files: all that fit, each with its arguments, a line of JSON each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from queuepool.jobs.client import Queue
from queuepool.operating.job_rows import failed_row, job_row
from queuepool.search.found import FoundJob, plain
from queuepool.search.look import Look
from queuepool.stores.records import FailedJob
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.failed import named_or_first, scope_for
from queuepool.web.pages.queues import named, shelf_of
from queuepool.web.scans import Scan
from queuepool.web.shown import arguments, without_data

Row = dict[str, Any]
#: jobs and bytes of a file, and seconds in which they are found: then the last line says that there may be more
_MOST, _MOST_BYTES, _WITHIN = 10_000, 16_000_000, 8.0


def waiting(desk: Desk, asked: Asked) -> bytes:
    """The jobs on one shelf of a queue."""
    (link, queue), shelf = named(desk, asked), shelf_of(asked)

    def read(opened: Queue) -> bytes:
        look = Look(opened.stores, asked.filter())
        return _lines(look, look.waiting(queue, (shelf,)).pages(), lambda job: _row(job, asked))

    return link.ask(read)


def failed(desk: Desk, asked: Asked) -> bytes:
    """The failed jobs of a connection, the latest first."""

    def read(opened: Queue) -> bytes:
        scope, look = scope_for(desk, asked, opened), Look(opened.stores, asked.filter())
        return _lines(look, scope.pages(look, math.inf), lambda job: _failed_row(job, asked))

    return named_or_first(desk, asked).ask(read)


def _lines(look: Look, pages: Iterator[list[FoundJob]], row_of: Callable[[FoundJob], Row]) -> bytes:
    """Each row is text as soon as it is found, as payloads may be large."""
    found, size, scan = list[bytes](), 0, Scan(look, 100 * _MOST, _WITHIN)
    for page in scan.pages(pages):
        for job in page:
            line = _line(row_of(job))
            size += len(line)
            if len(found) == _MOST or size > _MOST_BYTES:
                return b"".join([*found, _cut(f"there may be more than these {len(found)}")])
            found.append(line)
    if scan.is_cut:
        found.append(_cut(f"not all were looked at within {_WITHIN:.0f} s"))
    return b"".join(found)


def _cut(words: str) -> bytes:
    return _line({"cut": f"{words}: narrow the filter"})


def _line(row: Row) -> bytes:
    return f"{json.dumps(row, ensure_ascii=False, default=str)}\n".encode("utf-8", "replace")


def _row(job: FoundJob, asked: Asked) -> Row:
    return without_data(job_row(job), asked) | {"arguments": arguments(plain(job.arguments), asked, whole=True)}


def _failed_row(job: FoundJob, asked: Asked) -> Row:
    assert isinstance(job.where, FailedJob)
    shown = arguments(plain(job.arguments), asked, whole=True)
    return without_data(failed_row(job.where) | {"tags": list(job.tags)}, asked) | {"arguments": shown}
