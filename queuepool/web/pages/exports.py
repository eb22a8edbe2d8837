"""Lists of jobs as files: all that fit, each with its arguments, a line of JSON each."""

from __future__ import annotations

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
#: jobs of a file, and seconds in which they are found: then the last line says that there may be more
_MOST, _WITHIN = 10_000, 8.0


def waiting(desk: Desk, asked: Asked) -> list[Row]:
    """The jobs on one shelf of a queue."""
    (link, queue), shelf = named(desk, asked), shelf_of(asked)

    def read(opened: Queue) -> list[Row]:
        look = Look(opened.stores, asked.filter())
        return _rows(look, look.waiting(queue, (shelf,)).pages(), lambda job: _row(job, asked))

    return link.ask(read)


def failed(desk: Desk, asked: Asked) -> list[Row]:
    """The failed jobs of a connection, the latest first."""

    def read(opened: Queue) -> list[Row]:
        scope, look = scope_for(desk, asked, opened), Look(opened.stores, asked.filter())
        return _rows(look, scope.pages(look, math.inf), lambda job: _failed_row(job, asked))

    return named_or_first(desk, asked).ask(read)


def _rows(look: Look, pages: Iterator[list[FoundJob]], row_of: Callable[[FoundJob], Row]) -> list[Row]:
    rows, scan = list[Row](), Scan(look, 100 * _MOST, _WITHIN)
    for page in scan.pages(pages):
        rows += [row_of(job) for job in page[: _MOST - len(rows)]]
        if len(rows) == _MOST:
            return [*rows, {"cut": f"there may be more than these {_MOST}: narrow the filter"}]
    cut = {"cut": f"not all were looked at within {_WITHIN:.0f} s: narrow the filter"}
    return [*rows, cut] if scan.is_cut else rows


def _row(job: FoundJob, asked: Asked) -> Row:
    return without_data(job_row(job), asked) | {"arguments": arguments(plain(job.arguments), asked, whole=True)}


def _failed_row(job: FoundJob, asked: Asked) -> Row:
    assert isinstance(job.where, FailedJob)
    shown = arguments(plain(job.arguments), asked, whole=True)
    return without_data(failed_row(job.where) | {"tags": list(job.tags)}, asked) | {"arguments": shown}
