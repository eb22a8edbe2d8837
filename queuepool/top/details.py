"""All that is known of one process, its texts whole."""

from __future__ import annotations

from collections.abc import Iterator

from queuepool.board.overview import ProcessRow
from queuepool.top.layout import Line, Place, Span, Style
from queuepool.top.text import plain, wrapped


def details(process: ProcessRow, place: Place) -> Iterator[Line]:
    """A line for each fact, that of a long text on several."""
    facts = process.to_json()
    facts |= facts.pop("job", {})
    for key, value in facts.items():
        if value is not None:
            yield from _lines(key.replace("_", " "), plain(str(value), place.encoding), max(place.columns - 14, 1))


def _lines(key: str, text: str, room: int) -> Iterator[Line]:
    for number, part in enumerate(wrapped(text, room)):
        yield [Span(f"{'' if number else key:12}  ", Style.FAINT), Span(part)]
