"""The one place that prints. It escapes control characters: text may come from a payload, and a terminal obeys."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import click

from queuepool.top.layout import fitted, width
from queuepool.unix.escape import counted as counted
from queuepool.unix.escape import escaped

#: rows whose column widths a table computes together; the next batch gets its own
_ROWS = 1000
#: the version of the forms in docs/reference/json.md
_FORM = 1
#: how a line is folded
_FOLDED: Mapping[str, Any] = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
#: columns that are of no use when cut
WHOLE = frozenset({"id", "pid", "lock", "at", "ends", "failed_at", "last", "next", "next_utc", "due", "utc"})
#: shorter titles, where the room is short
_SHORT = {
    "oldest_pending": "oldest", "quarantined": "quar.", "per_minute": "/min", "given_back": "back",
    "ready_most": "most", "oldest_most": "most",
}  # fmt: skip
_GAP = "  "
#: the least width of a text while columns can still be left out, and when none can
_LEAST, _FEWEST = 12, 5
FORCE = click.option("--force", "--yes", "force", is_flag=True, help="Do not ask for confirmation")


def open_streams() -> None:
    """Repair what the caller has broken: no stream is missing, and every character can be written."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # else a socket would get this number and be written to
            setattr(sys, name, open(fd, "w" if fd else "r", closefd=False))  # noqa: SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Flush standard output. Raises ``OSError``."""
    sys.stdout.flush()


def close() -> None:
    """Drop what is buffered: the reader is gone or the disk is full, and it must not fail again at the exit."""
    with suppress(OSError):  # there may be no descriptor left
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def say(line: str) -> None:
    """One line for a person or a script."""
    sys.stdout.write(f"{escaped(line)}\n")


def complain(line: str) -> None:
    """One line on standard error."""
    with suppress(OSError):  # there is nowhere else to report it
        sys.stderr.write(f"{escaped(line)}\n")
        sys.stderr.flush()


def show(text: str) -> None:
    """Several lines, each escaped by itself."""
    for line in text.splitlines():
        say(line)


def clear_screen() -> None:
    """Begin at the top of an empty terminal; anywhere else, an empty line."""
    sys.stdout.write("\x1b[H\x1b[2J\x1b[3J" if has_terminal_for_output() else "\n")


def has_terminal_for_output() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def raw(data: bytes) -> None:
    """Write bytes unchanged."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def document(value: Any) -> None:
    """The one JSON document of a verb."""
    sys.stdout.write(f"{json.dumps(value, indent=2)}\n")


def versioned(facts: Mapping[str, Any]) -> dict[str, Any]:
    """One object of ours for a verb's JSON document, with the version, which is raised when a key changes or goes."""
    return {"version": _FORM, **facts}


def documents(values: Iterable[Any]) -> None:
    """One JSON array, written item by item."""
    lead = "["
    for value in values:
        sys.stdout.write(f"{lead}\n{json.dumps(value)}")
        lead = ","
    sys.stdout.write("[]\n" if lead == "[" else "\n]\n")


def listing(rows: Iterable[Mapping[str, Any]], as_json: bool, spare: Sequence[str] = ()) -> None:
    """Rows with the same keys, as a table or as JSON; ``spare`` as for ``table``."""
    if as_json:
        documents(rows)
        return
    rest = iter(rows)
    for first in rest:
        table(list(first), (_cells(row) for row in chain([first], rest)), spare)


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    spare: Sequence[str] = (),
    whole: Container[str] = WHOLE,
) -> None:
    """Columns under their names; nothing at all if there are no rows.

    On a terminal it fits the width: columns in ``spare`` are left out in their order, and texts not in ``whole`` are
    cut.
    """
    cells = (tuple(escaped(str(cell)) for cell in row) for row in rows)
    if not (page := list(islice(cells, _ROWS))):
        return
    shown = Columns(headers, page, _room(), spare, whole)
    page.insert(0, tuple(shown.titles))
    while page:
        for line in shown.lines(page):
            sys.stdout.write(f"{line}\n")
        page = list(islice(cells, _ROWS))
    if shown.left_out:
        words = f"note: no room for {', '.join(shown.left_out)}: a pipe (| cat) and --json show all columns"
        for part in _folded(words):
            complain(part)


def progress(words: str) -> None:
    """How far a long command is, on one line of a terminal that the next call replaces; an empty text removes it."""
    if sys.stderr is not None and sys.stderr.isatty():
        with suppress(OSError):
            sys.stderr.write(f"\r{escaped(words)}\x1b[K")
            sys.stderr.flush()


def fold(line: str) -> None:
    """One line, on a terminal folded between words."""
    for part in _folded(escaped(line)):
        sys.stdout.write(f"{part}\n")


def _folded(text: str) -> list[str]:
    room = _room()
    return [text] if room is None else wrap(text, room, **_FOLDED)


def _room() -> int | None:
    """Columns of the terminal; ``None`` where there is none."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def _cells(row: Mapping[str, Any]) -> list[object]:
    return ["-" if value is None else value for value in row.values()]


class Columns:
    """Which columns are shown; ``room`` is the width of the terminal, ``None`` where there is none."""

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        room: int | None,
        spare: Sequence[str],
        whole: Container[str],
    ) -> None:
        """``spare``: what may be left out, in this order; ``whole``: what is not cut."""
        self._room = room
        self._whole = whole
        self._names = names
        self._places = list(range(len(names)))
        self.titles = [name.upper() for name in names]
        self.left_out: list[str] = []
        if room is not None and not self._fits(_widths([self.titles, *rows]), room):
            self.titles = [_SHORT.get(name, name).upper() for name in names]
            self._leave_out(_widths([self.titles, *rows]), room, spare)

    def lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Each row as a line."""
        widths = _widths(rows) if self._room is None else self._cut(_widths(rows), self._room)
        for row in rows:
            cells = (self._cell(row[place], widths[place]) for place in self._places)
            yield _GAP.join(cells).rstrip()

    def _cell(self, text: str, columns: int) -> str:
        return text.ljust(columns) if self._room is None else fitted(text, columns)

    def _leave_out(self, widths: Sequence[int], room: int, spare: Sequence[str]) -> None:
        for name in spare:
            least = [self._least(place, wide, _LEAST) for place, wide in enumerate(widths)]
            if self._fits(least, room):
                return
            if name in self._names:
                self._places.remove(self._names.index(name))
                self.left_out.append(name)

    def _cut(self, widths: Sequence[int], room: int) -> list[int]:
        """These widths, with the widest reduced until they fit or none can shrink."""
        found = list(widths)
        for shortest in (_LEAST, _FEWEST):
            least = [self._least(place, wide, shortest) for place, wide in enumerate(widths)]
            while not self._fits(found, room):
                wide = [place for place in self._places if found[place] > least[place]]
                if not wide:
                    break
                found[max(wide, key=found.__getitem__)] -= 1
        return found

    def _least(self, place: int, wide: int, shortest: int) -> int:
        return wide if self._names[place] in self._whole else min(wide, shortest)

    def _fits(self, widths: Sequence[int], room: int) -> bool:
        return sum(widths[place] for place in self._places) + len(_GAP) * (len(self._places) - 1) <= room


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) for column in zip(*rows, strict=True)]


def has_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_declined(question: str, otherwise: str) -> bool:
    """Ask; after a no, say ``otherwise``. Raises ``click.Abort`` if there is no answer."""
    if click.confirm(escaped(question), err=True):
        return False
    complain(otherwise)
    return True
