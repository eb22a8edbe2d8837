"""Lines of styled text, and tables that lose columns rather than break on a narrow terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from queuepool.top.text import NONE, cut, fitted, width

_GAP = "  "


class Style(Enum):
    """What a span means; how that looks is the screen's business."""

    PLAIN = auto()
    STRONG = auto()
    FAINT = auto()
    GOOD = auto()
    WARNING = auto()
    BAD = auto()
    TITLE = auto()
    SELECTED = auto()


@dataclass(frozen=True, slots=True)
class Display:
    """The terminal: ``encoding`` is what it can show. ``lines``: ``None`` = as many as there are."""

    columns: int
    lines: int | None
    encoding: str = "utf-8"


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: Style = Style.PLAIN


Line = Sequence[Span]


def line(text: str, style: Style = Style.PLAIN) -> Line:
    """A line of one span."""
    return (Span(text, style),)


def plain_text(spans: Line) -> str:
    """What a line says, without its styles."""
    return "".join(span.text for span in spans).rstrip()


def within(spans: Line, columns: int) -> Line:
    """The line, cut to ``columns`` columns."""
    found, left = [], columns
    for span in spans:
        text = cut(span.text, left)
        found.append(Span(text, span.style))
        left -= width(text)
    return found


class Column(NamedTuple):
    """``least``: the width below which its texts are not cut. ``drop``: the highest goes first; 0 = stays.

    ``is_extra``: left out if no row has anything in it.
    """

    title: str
    least: int = 0
    drop: int = 0
    is_number: bool = False
    is_extra: bool = False


class TableRow(NamedTuple):
    """One row of a table; ``subject`` is the name of what it shows, for the keys that act on it."""

    cells: Sequence[str]
    style: Style = Style.PLAIN
    subject: str = ""


def table(
    columns: Sequence[Column], rows: Sequence[TableRow], room: int, all_rows: Sequence[TableRow] = ()
) -> list[Line]:
    """The title line and the rows, each in ``room`` columns, as wide as ``all_rows`` need: no column jumps."""
    widths = _shrunk(columns, _kept(columns, _natural(columns, all_rows or rows), room), room)
    titles = TableRow([column.title for column in columns], Style.TITLE)
    return [_line(columns, widths, row, room) for row in (titles, *rows)]


def _natural(columns: Sequence[Column], rows: Sequence[TableRow]) -> list[int]:
    widths = [width(column.title) for column in columns]
    for row in rows:
        widths = [max(before, width(cell)) for before, cell in zip(widths, row.cells, strict=True)]
    return [-1 if column.is_extra and _is_empty(rows, index) else widths[index] for index, column in enumerate(columns)]


def _is_empty(rows: Sequence[TableRow], index: int) -> bool:
    return all(row.cells[index] in ("", NONE) for row in rows)


def _kept(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """The widths, -1 for columns that are left out: the others would not fit even if they were cut."""
    found = list(widths)
    for index in sorted(range(len(columns)), key=lambda index: -columns[index].drop):
        least = [min(column.least or now, now) for column, now in zip(columns, found, strict=True)]
        if _total(least) <= room or not columns[index].drop:
            break
        found[index] = -1
    return found


def _shrunk(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """The widest column that may be cut gives way until the line fits."""
    found = list(widths)
    while _total(found) > room:
        cuttable = [index for index, column in enumerate(columns) if column.least and found[index] > column.least]
        if not cuttable:
            break
        found[max(cuttable, key=found.__getitem__)] -= 1
    return found


def _total(widths: Sequence[int]) -> int:
    kept = [width for width in widths if width >= 0]
    return sum(kept) + len(_GAP) * (len(kept) - 1)


def _line(columns: Sequence[Column], widths: Sequence[int], row: TableRow, room: int) -> Line:
    cells = [
        fitted(cell, wide, to_the_right=column.is_number)
        for column, wide, cell in zip(columns, widths, row.cells, strict=True)
        if wide >= 0
    ]
    return line(fitted(_GAP.join(cells), room), row.style)
