"""The INI file as lines that know where they stand; only its form is judged here, not its meaning."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from queuepool.config_values import INLINE_COMMENT, NO_INLINE_COMMENTS

LARGEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written, as errors name it; ``line`` is 0 outside the file."""

    label: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """A ``[title]`` line."""

    title: str
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    """A ``key = value`` line, or a flag or variable that stands for one; the value is raw."""

    section: str
    key: str
    value: str
    place: Place


Line = Header | Entry | Problem


@dataclass(frozen=True, slots=True)
class Document:
    """A file's lines; ``is_public`` claims that any user of this host can read it."""

    lines: tuple[Line, ...] = ()
    is_public: bool = False

    def headers(self) -> list[Header]:
        return [line for line in self.lines if isinstance(line, Header)]

    def entries(self) -> list[Entry]:
        return [line for line in self.lines if isinstance(line, Entry)]

    def problems(self) -> list[Problem]:
        return [line for line in self.lines if isinstance(line, Problem)]


def read(path: Path) -> Document:
    """The file's lines and every fault of its form; never blocks, whatever ``path`` is."""
    try:
        data, status = _contents(path)
    except OSError as error:
        return _refused(str(path), f"cannot be read: {error.strerror or error}")
    except ValueError as error:
        return _refused(str(path), str(error))
    return _document(data, str(path), is_public=bool(status.st_mode & stat.S_IROTH))


def _refused(file: str, text: str, line: int = 0) -> Document:
    return Document((Problem(Place(f"{file}:{line}" if line else file, line), text),))


def _contents(path: Path) -> tuple[bytes, os.stat_result]:
    # Without O_NONBLOCK the open of a FIFO waits for its writer; the checks are of the descriptor, since
    # the path may become another file between a stat and an open.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        _check_file(status)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(LARGEST_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > LARGEST_BYTES:
        raise ValueError("is larger than 1 MB, which no configuration is")
    return data, status


def _check_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ValueError("is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is not a regular file")
    if status.st_uid not in (0, os.geteuid()):
        raise ValueError(f"belongs to another user (uid {status.st_uid}): chown it to root or to yourself")


def _document(data: bytes, file: str, is_public: bool) -> Document:
    if b"\0" in data:
        return _refused(file, "contains a NUL byte", _line_of(data, data.index(0)))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _refused(file, "is not UTF-8", _line_of(data, error.start))
    lines = tuple(_without_twins(_lines(text, file)))
    return Document(lines, is_public) if lines else _refused(file, "no [pool] section")


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _lines(text: str, file: str) -> Iterator[Line]:
    title: str | None = ""
    # Not splitlines(), which also breaks at form feeds and U+2028 and so would count other lines than editors do.
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line[0] in ";#":
            continue
        if line[0] == "[":
            title = _title(line)
            yield from _header(line, f"{file}:{number}", number)
        elif title is not None:
            yield _entry(title, line, f"{file}:{number}", number)


def _title(line: str) -> str | None:
    found = re.match(r"\[([^\]]*)\]", line)
    return found[1] if found else None


def _header(line: str, where: str, number: int) -> Iterator[Line]:
    title = _title(line)
    if title is None:
        yield Problem(Place(where, number), "a section is written [name]")
        return
    yield Header(title, Place(f"{where}: [{title}]", number))
    rest = line[len(title) + 2 :]
    if rest:
        text = NO_INLINE_COMMENTS if INLINE_COMMENT.search(rest) else "nothing may follow the section on its line"
        yield Problem(Place(f"{where}: [{title}]", number), text)


def _entry(title: str, line: str, where: str, number: int) -> Line:
    key, equals, value = (part.strip(" \t") for part in line.partition("="))
    # What is not a key is not repeated: it may be half a URL with its password.
    if not equals or not re.fullmatch(r"[A-Za-z0-9_.-]+", key):
        return Problem(Place(where, number), "is not `key = value` (a value cannot go on over several lines)")
    if not title:
        return Problem(Place(f"{where}: {key}", number), "stands before the first section")
    return Entry(title, key, value, Place(f"{where}: [{title}] {key}", number))


def _without_twins(lines: Iterator[Line]) -> Iterator[Line]:
    """The lines, and a problem after each that repeats an earlier one."""
    seen: dict[tuple[str, str], int] = {}
    for line in lines:
        yield line
        if isinstance(line, Problem):
            continue
        name = (line.section, line.key) if isinstance(line, Entry) else (line.title, "")
        first = seen.setdefault(name, line.place.line)
        if first != line.place.line:
            yield Problem(line.place, f"is already in line {first}")
