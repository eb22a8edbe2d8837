"""The one place that prints. It escapes control characters: text may come from a payload, and a terminal obeys."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from queuepool.unix.escape import escaped

#: rows whose column widths a table computes together; the next batch gets its own
_ROWS = 1000
_GAP = "  "
#: the version of the forms in docs/reference/json.md
_FORM = 1


def open_streams() -> None:
    """Repair what the caller left: no stream is missing, and no character fails to be written."""
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
    """The reader is gone, or there is no room: what is still buffered must not fail again at the exit."""
    with suppress(OSError):  # there may be no descriptor left
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def say(line: str) -> None:
    """One line for a person or a script."""
    sys.stdout.write(f"{escaped(line)}\n")


def counted(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def complain(line: str) -> None:
    """One line on standard error."""
    with suppress(OSError):  # there is nowhere else to report it
        sys.stderr.write(f"{escaped(line)}\n")
        sys.stderr.flush()


def show(text: str) -> None:
    """Several lines, each escaped by itself."""
    for line in text.splitlines():
        say(line)


def raw(data: bytes) -> None:
    """Write bytes unchanged."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def document(value: Any) -> None:
    """The one JSON document of a verb."""
    sys.stdout.write(f"{json.dumps(value, indent=2)}\n")


def versioned(facts: Mapping[str, Any]) -> None:
    """One object of ours as the JSON document of a verb; its version is raised when a key changes or goes."""
    document({"version": _FORM, **facts})


def documents(values: Iterable[Any]) -> None:
    """One JSON array, written item by item."""
    lead = "["
    for value in values:
        sys.stdout.write(f"{lead}\n{json.dumps(value)}")
        lead = ","
    sys.stdout.write("[]\n" if lead == "[" else "\n]\n")


def listing(rows: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    """Rows with the same keys, as a table or as JSON."""
    if as_json:
        documents(rows)
        return
    rest = iter(rows)
    for first in rest:
        table(list(first), (_cells(row) for row in chain([first], rest)))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns under their names; nothing at all if there are no rows."""
    cells = (tuple(escaped(str(cell)) for cell in row) for row in rows)
    first = list(islice(cells, _ROWS))
    if first:
        _write([tuple(name.upper() for name in headers), *first])
    while page := list(islice(cells, _ROWS)):
        _write(page)


def _cells(row: Mapping[str, Any]) -> list[object]:
    return ["-" if value is None else value for value in row.values()]


def _write(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for line in _lines(rows, widths):
        sys.stdout.write(f"{line}\n")


def _lines(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for row in rows:
        yield _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
