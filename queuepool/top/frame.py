"""One frame: facts in, styled lines out. Pure, and no larger than the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queuepool.top import jobs, queues, workers
from queuepool.top.details import details
from queuepool.top.head import head
from queuepool.top.keys import HELP, footer
from queuepool.top.layout import Column, Line, Place, Row, Style, line, plain_text, table, within
from queuepool.top.orders import Page, ordered
from queuepool.top.reading import Reading
from queuepool.top.text import plain, wrapped
from queuepool.top.units import count
from queuepool.top.view import Mode, View

#: the least number of lines of the table that the page is about
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Table:
    """What a page shows, in its order and after its filter."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    items: Sequence[Any]


_PAGES: dict[Page, tuple[Callable[[Reading], Sequence[Any]], Callable[[Any, str], Row], Sequence[Column]]] = {
    Page.WORKERS: (workers.processes, workers.row, workers.COLUMNS),
    Page.QUEUES: (queues.queues, queues.row, queues.COLUMNS),
    Page.JOBS: (jobs.jobs, jobs.row, jobs.COLUMNS),
}


def table_of(reading: Reading, view: View, encoding: str = "utf-8", page: Page | None = None) -> Table:
    """The table of the view's page, or of another one in that page's own order."""
    find, show, columns = _PAGES[page or view.page]
    order = (0, False) if page else (view.order, view.is_reversed)
    found = [(item, show(item, encoding)) for item in ordered(page or view.page, *order, find(reading))]
    wanted = "" if page else view.filter.casefold()
    kept = [(item, row) for item, row in found if wanted in " ".join(row.cells).casefold()]
    rows = [row if reading.runs else row._replace(style=Style.FAINT) for _, row in kept]
    return Table(columns, rows, [item for item, _ in kept])


def frame(reading: Reading, view: View, place: Place, now: float, pools: int = 1) -> list[Line]:
    """The lines for a terminal of this size; ``now`` is Unix time, ``pools`` the number of pools to choose from."""
    assert place.lines is not None
    above = list(head(reading, now, place))
    room = max(place.lines - 1 - len(above), 0)
    body = _body(reading, view, place, room) if room else []
    lines = [*above, *body][: place.lines - 1]
    lines += [line("")] * (place.lines - 1 - len(lines))
    return [within(each, place.columns) for each in (*lines, footer(view, place.encoding, pools))]


def _body(reading: Reading, view: View, place: Place, room: int) -> list[Line]:
    if view.mode is Mode.HELP:
        return [line(""), *map(line, HELP)][:room]
    if view.command:
        return [line(""), *_question(view.command.question, place)][:room]
    main = table_of(reading, view, place.encoding)
    if view.mode is Mode.DETAILS and main.items:
        return [line(""), *details(main.items[min(view.row, len(main.items) - 1)], place)][:room]
    if view.page is not Page.WORKERS:
        return [line(""), *_scrolled(main, view, place, room - 1)]
    summary = table_of(reading, view, place.encoding, Page.QUEUES)
    few = min(len(summary.rows), max((room - 2 - _LEAST) // 3, 0))
    top = [line(""), *table(summary.columns, summary.rows[:few], place.columns, summary.rows)] if few else []
    left = len(summary.rows) - few if few else 0
    gap = line(f"and {count(left)} more: key 2" if left else "", Style.FAINT)
    return [*top, gap, *_scrolled(main, view, place, room - len(top) - 1)]


def _question(question: str, place: Place) -> list[Line]:
    """The whole question, on several lines if the terminal is narrow: what it is about must be seen."""
    words = wrapped(plain(question, place.encoding), place.columns)
    return [*(line(each, Style.BAD) for each in words), line("y = yes, any other key = no", Style.STRONG)]


def _scrolled(found: Table, view: View, place: Place, room: int) -> list[Line]:
    """The part of the table that fits, with the chosen row in it."""
    if not found.rows:
        return [line("nothing to show", Style.FAINT)][: max(room, 0)]
    chosen, shown = min(view.row, len(found.rows) - 1), max(room - 1, 1)
    if is_cut := len(found.rows) > shown > 2:
        shown -= 1  # for the line that says so
    first = min(max(chosen - shown // 2, 0), max(len(found.rows) - shown, 0))
    rows = list(found.rows[first : first + shown])
    rows[chosen - first] = rows[chosen - first]._replace(style=Style.SELECTED)
    lines = table(found.columns, rows, place.columns, found.rows)
    return [*lines, *_beyond(first, len(found.rows) - first - shown, is_cut=is_cut)][: max(room, 0)]


def _beyond(above: int, below: int, *, is_cut: bool) -> list[Line]:
    """How many rows lie above and below those that are shown."""
    parts = [f"{count(number)} {where}" for number, where in ((above, "above"), (below, "below")) if number]
    return [line(f"more rows: {', '.join(parts)}", Style.FAINT)] if is_cut else []


def report(reading: Reading, place: Place, now: float) -> list[str]:
    """The whole pool as plain lines, for a pipe: all tables, all rows."""
    lines = [*head(reading, now, place)]
    for page in (Page.QUEUES, Page.WORKERS, Page.JOBS):
        found = table_of(reading, View(), place.encoding, page)
        if found.rows:
            lines += [line(""), *table(found.columns, found.rows, place.columns)]
    return [plain_text(each) for each in lines]  # a pipe has no edge: what is wrong is said in full
