"""One frame: facts in, styled lines out. Pure, and no larger than the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queuepool.board.health import NOT_RUNNING, STUCK, Health
from queuepool.board.overview import PoolOverview, ProcessRow
from queuepool.board.status import LocalPool, iso
from queuepool.top.layout import (
    Column,
    Display,
    Line,
    Span,
    Style,
    TableRow,
    count,
    duration,
    line,
    megabytes,
    plain,
    plain_text,
    rate,
    table,
    width,
    within,
    wrapped,
)
from queuepool.top.reading import PoolReading
from queuepool.top.tables import PAGES, Page, ordered
from queuepool.top.view import HELP, Mode, View, footer

#: the least number of lines of the table that the page is about
_LEAST = 4
_BAR = 30
_STATES = {"running": Style.GOOD, NOT_RUNNING: Style.BAD, STUCK: Style.BAD, "failing": Style.BAD}


@dataclass(frozen=True, slots=True)
class Table:
    """What a page shows, in its order and after its filter."""

    columns: Sequence[Column]
    rows: Sequence[TableRow]
    items: Sequence[Any]


def table_of(reading: PoolReading, view: View, encoding: str = "utf-8", page: Page | None = None) -> Table:
    """The table of the view's page, or of another one in that page's own order."""
    shown = PAGES[page or view.page]
    order = (0, False) if page else (view.order, view.is_reversed)
    found = [(item, shown.row(item, encoding)) for item in ordered(page or view.page, *order, shown.items(reading))]
    wanted = "" if page else view.filter.casefold()
    kept = [(item, row) for item, row in found if wanted in " ".join(row.cells).casefold()]
    rows = [row if reading.runs else row._replace(style=Style.FAINT) for _, row in kept]
    return Table(shown.columns, rows, [item for item, _ in kept])


def frame(reading: PoolReading, view: View, place: Display, now: float, pools: int = 1) -> list[Line]:
    """The lines for a terminal of this size; ``now`` is Unix time, ``pools`` the number of pools to choose from."""
    assert place.lines is not None
    above = list(head(reading, now, place))
    room = max(place.lines - 1 - len(above), 0)
    body = _body(reading, view, place, room) if room else []
    lines = [*above, *body][: place.lines - 1]
    lines += [line("")] * (place.lines - 1 - len(lines))
    return [within(each, place.columns) for each in (*lines, footer(view, place.encoding, pools))]


def _body(reading: PoolReading, view: View, place: Display, room: int) -> list[Line]:
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
    gap = line(f"and {count(left)} more: press 2" if left else "", Style.FAINT)
    return [*top, gap, *_scrolled(main, view, place, room - len(top) - 1)]


def _question(question: str, place: Display) -> list[Line]:
    """The whole question, on several lines if the terminal is narrow: what it is about must be seen."""
    words = wrapped(plain(question, place.encoding), place.columns)
    return [*(line(each, Style.BAD) for each in words), line("y = yes, any other key = no", Style.STRONG)]


def _scrolled(found: Table, view: View, place: Display, room: int) -> list[Line]:
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


def report(reading: PoolReading, place: Display, now: float) -> list[str]:
    """The whole pool as plain lines, for a pipe: all tables, all rows."""
    lines = [*head(reading, now, place)]
    for page in (Page.QUEUES, Page.WORKERS, Page.JOBS):
        found = table_of(reading, View(), place.encoding, page)
        if found.rows:
            lines += [line(""), *table(found.columns, found.rows, place.columns)]
    return [plain_text(each) for each in lines]  # a pipe has no edge: troubles are shown in full


def head(reading: PoolReading, now: float, place: Display) -> Iterator[Line]:
    """The lines above the tables; ``now`` is Unix time."""
    yield _title(reading, now, place)
    if reading.problem:
        yield line(plain(reading.problem, place.encoding), Style.BAD)
    if reading.local is None:
        return
    if reading.runs:
        yield from _troubles(reading.health, place)
    else:
        yield line(f"as last seen {iso(reading.seen_at)}:", Style.WARNING)
    yield _workers(reading.local.overview, reading.counts.failed_jobs, place.columns)
    yield _speed(reading.local.overview, reading.pace.rates)
    yield line(plain(_origin(reading.local), place.encoding), Style.FAINT)


def _troubles(health: Health, place: Display) -> Iterator[Line]:
    """The troubles, on at most a quarter of the lines: the tables must be seen, too."""
    found = [plain(f"! {trouble.text}", place.encoding) for trouble in health.troubles]
    most = max(place.lines // 4, 1) if place.lines else len(found)
    for each in found[:most]:
        yield line(each, Style.WARNING)
    if left := len(found[most:]):
        yield line(f"! and {left} more: see queuepool status", Style.WARNING)


def _title(reading: PoolReading, now: float, place: Display) -> Line:
    name, about = plain(f"queuepool {reading.pool}", place.encoding), _about(reading.running, now)
    state = Span(reading.state, _STATES.get(reading.state, Style.WARNING))
    spans = [Span(f"{name}  ", Style.STRONG), state, Span(about)]
    clock = iso(now)
    gap = place.columns - sum(width(span.text) for span in spans) - len(clock)
    return [*spans, Span(f"{' ' * gap}{clock}", Style.FAINT)] if gap > 1 else spans


def _about(running: LocalPool | None, now: float) -> str:
    if running is None:
        return ""
    pool = running.overview
    try:
        up = now - datetime.fromisoformat(pool.since).timestamp()
    except ValueError:  # empty: the board has been overwritten
        up = None
    return f"  up {duration(up)}  master {pool.master}  generation {count(pool.generation)}"


def _workers(pool: PoolOverview, failed_jobs: int, columns: int) -> Line:
    """How many of the workers are busy, in numbers and as a bar where there is room for one."""
    wanted, busy = max(pool.workers, 0), pool.busy
    memory = sum(max(process.memory or 0, 0) for process in pool.processes)
    kept = f", failed jobs kept: {count(failed_jobs)}" if failed_jobs else ""
    text = f"{count(busy)} of {count(wanted)} workers busy, {megabytes(memory)}{kept}  "
    room = max(min(_BAR, columns - len(text) - 2), 0)
    full = round(room * min(busy / wanted, 1.0)) if wanted else 0
    style = Style.WARNING if busy >= wanted else Style.GOOD
    return [Span(f"{text}["), Span("|" * full, style), Span(f"{' ' * (room - full)}]")]


def _speed(pool: PoolOverview, rates: tuple[float, float, float] | None) -> Line:
    done, failed, released = rates or (None, None, None)
    return [
        Span(f"done {count(pool.done)} ({rate(done)})  "),
        Span(f"failed {count(pool.failed)} ({rate(failed)})", Style.WARNING if failed else Style.PLAIN),
        Span(f"  released {count(pool.released)} ({rate(released)})"),
    ]


def _origin(local: LocalPool) -> str:
    found = local.about
    words = {"store": found.store, "configuration": found.configuration, "user": found.user} if found else {}
    return "  ".join(f"{key} {value}" for key, value in words.items() if value)


def details(process: ProcessRow, place: Display) -> Iterator[Line]:
    """A line for each fact, several for a long text."""
    facts = process.to_json()
    facts |= facts.pop("job", {})
    for key, value in facts.items():
        if value is not None:
            yield from _lines(key.replace("_", " "), plain(str(value), place.encoding), max(place.columns - 14, 1))


def _lines(key: str, text: str, room: int) -> Iterator[Line]:
    for number, part in enumerate(wrapped(text, room)):
        yield [Span(f"{'' if number else key:12}  ", Style.FAINT), Span(part)]
