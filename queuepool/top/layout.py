"""Lines of styled text, and tables that lose columns rather than break on a narrow terminal.

Texts and numbers have a known width there: whatever a job has written, it fills its columns and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple
from unicodedata import category, combining, east_asian_width, normalize

from queuepool.unix.escape import escaped

_GAP = "  "
#: characters of a text that are looked at; no field of the board is longer
_LONGEST = 3000
#: variation selectors: some terminals draw the character before them twice as wide
_SELECTORS = range(0xFE00, 0xFE10)
#: vowels and final consonants of Hangul, drawn into the syllable before them
_JOINED = (*range(0x1160, 0x1200), *range(0xD7B0, 0xD800))
_CUT = "~"
#: numbers from a board may be anything, so each has a longest form
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MOST_DAYS = 999
_GROUPED_BELOW = 10_000_000
_SIZES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
NONE = "-"


class Style(Enum):
    """What a span means; how that looks is decided by the screen."""

    PLAIN = auto()
    STRONG = auto()
    FAINT = auto()
    GOOD = auto()
    WARNING = auto()
    BAD = auto()
    TITLE = auto()
    SELECTED = auto()


class Display(NamedTuple):
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
    """A line's text, without its styles."""
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


def plain(text: str, encoding: str = "utf-8") -> str:
    """The text without characters that could move the cursor, or that ``encoding`` does not have: these are escaped."""
    if text.isascii() and text.isprintable():
        return text[:_LONGEST]
    shown = "".join(map(_shown, normalize("NFC", escaped(text[:_LONGEST]))))
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _shown(letter: str) -> str:
    if ord(letter) in _SELECTORS:
        return ""
    return letter if letter.isprintable() else ascii(letter)[1:-1]


def width(text: str) -> int:
    """How many columns a text from ``plain`` takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(letter: str) -> int:
    if combining(letter) or category(letter) in ("Mn", "Me") or ord(letter) in _JOINED:
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """A text from ``plain`` in at most ``columns`` columns; ``~`` at its end stands for the rest."""
    if len(text) <= columns and text.isascii():
        return text
    if width(text) <= columns:
        return _few_marks(text)
    return f"{_begin(text, columns - 1)}{_CUT}" if columns > 0 else ""


def _begin(text: str, columns: int) -> str:
    taken, used = "", 0
    for letter in text:
        used += _width(letter)
        if used > columns:
            break
        taken += letter
    return _few_marks(taken)


def _few_marks(text: str) -> str:
    """At most two marks on each letter, and none without one: piled up, they would cover the lines above."""
    kept, marks = "", 2
    for letter in text:
        marks = 0 if _width(letter) else marks + 1
        kept += letter if marks <= 2 else ""
    return kept


def fitted(text: str, columns: int, *, to_the_right: bool = False) -> str:
    """A text from ``plain``, cut or filled with spaces to exactly ``columns`` columns."""
    shown = cut(text, columns)
    gap = " " * (columns - width(shown))
    return gap + shown if to_the_right else shown + gap


def wrapped(text: str, columns: int) -> list[str]:
    """A text from ``plain`` in lines of at most ``columns`` columns, broken anywhere."""
    size = max(columns if text.isascii() else columns // 2, 1)  # letters may be two columns wide
    return [text[start : start + size] for start in range(0, max(len(text), 1), size)]


def duration(seconds: float | None) -> str:
    """``3.3s``, ``42s``, ``12m05s``, ``3h07m``, ``12d04h``; ``-`` for ``None``."""
    if seconds is None:
        return NONE
    whole = int(min(max(seconds, 0.0), _MOST_DAYS * _DAY + 1))
    if whole < _MINUTE:
        return f"{max(seconds, 0.0):.1f}s" if seconds < 10 else f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02}h" if whole <= _MOST_DAYS * _DAY else f">{_MOST_DAYS}d"


def brief(seconds: float) -> str:
    """A duration that may be short: ``4ms``, ``0.25s``, then as ``duration``."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.2f}s" if seconds < 1 else duration(seconds)


def count(number: int) -> str:
    """``1,234,567``, from ten millions on ``12.3M``; ``-`` for what cannot be a count."""
    if not 0 <= number < 2**63:
        return NONE
    if number < _GROUPED_BELOW:
        return f"{number:,}"
    return next(f"{min(number / size, 9999):.1f}{unit}" for size, unit in _SIZES if number >= size)


def rate(each_second: float | None) -> str:
    """``0.4/s``, ``412/s``; ``-`` for ``None``."""
    if each_second is None:
        return NONE
    return f"{each_second:.1f}/s" if abs(each_second) < 100 else f"{count(int(abs(each_second)))}/s"


def change(each_second: float | None) -> str:
    """A rate with its sign: ``+4.0/s``, ``-120/s``, ``0/s``."""
    if each_second is None:
        return NONE
    if abs(each_second) < 0.05:
        return "0/s"
    return f"{'+' if each_second > 0 else '-'}{rate(abs(each_second))}"


def megabytes(number: int) -> str:
    """``43 MB``, ``1.5 GB``; ``-`` for what cannot be a size."""
    if not 0 <= number < 2**40:
        return NONE
    return f"{number} MB" if number < 10_000 else f"{number / 1024:.1f} GB"
