"""Entries from the file, the environment and flags, each with its place. Checks their form, not their meaning."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from queuepool.config.values import INLINE_COMMENT, NO_INLINE_COMMENTS

KINDS = ("pool", "connection")
UNKNOWN_SECTION = "unknown section; there are [pool], [pool:NAME], [connection] and [connection:NAME]"
LARGEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry was written, as errors name it; ``line`` is 0 outside the file."""

    label: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One key's raw value, from a line, a flag or a variable; a section's own line has an empty key."""

    section: str
    key: str
    value: str
    place: Place


class Readers(NamedTuple):
    """Which users can read a file."""

    #: every user of this host can read it
    are_all: bool = False
    #: its mode cannot be changed: its mount is read-only, as that of a container's secrets is
    are_fixed: bool = False

    @classmethod
    def of(cls, file: int | str) -> Readers:
        """The readers of an open descriptor or of a path. Raises ``OSError``."""
        are_fixed = bool(os.statvfs(file).f_flag & os.ST_RDONLY)
        return cls(bool(os.stat(file).st_mode & stat.S_IROTH), are_fixed)


_NO_OTHERS = Readers()


@dataclass(frozen=True, slots=True)
class Document:
    """A file's lines, and which users can read it."""

    lines: tuple[Entry | Problem, ...] = ()
    readers: Readers = _NO_OTHERS

    def headers(self) -> list[Entry]:
        """The sections' own lines."""
        return [line for line in self.lines if isinstance(line, Entry) and not line.key]

    def entries(self) -> list[Entry]:
        """The lines with a key."""
        return [line for line in self.lines if isinstance(line, Entry) and line.key]

    def problems(self) -> list[Problem]:
        """The problems of form."""
        return [line for line in self.lines if isinstance(line, Problem)]


def read(path: Path) -> Document:
    """The file's lines and every problem of its form, unreadable files included; never blocks, whatever ``path`` is."""
    try:
        data, readers = contents(path)
    except OSError as error:
        return _refused(str(path), f"cannot be read: {error.strerror or error}")
    except ValueError as error:
        return _refused(str(path), str(error))
    return _document(data, str(path), readers)


def _refused(file: str, text: str, line: int = 0) -> Document:
    return Document((Problem(Place(f"{file}:{line}" if line else file, line), text),))


def contents(path: Path) -> tuple[bytes, Readers]:
    """The bytes of a file, and which users can read it.

    Raises ``OSError``, and ``ValueError`` for more than 1 MB or what is not a regular file.
    """
    # Without O_NONBLOCK, opening a FIFO waits for its writer. The checks use the descriptor, since the path may become
    # another file between a stat and an open.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check_file(os.fstat(fd))
        readers = Readers.of(fd)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(LARGEST_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > LARGEST_BYTES:
        raise ValueError("is larger than 1 MB, which no configuration is")
    return data, readers


def _check_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ValueError("is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is not a regular file")


def _document(data: bytes, file: str, readers: Readers) -> Document:
    if b"\0" in data:
        return _refused(file, "contains a NUL byte", _line_of(data, data.index(0)))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _refused(file, "is not UTF-8", _line_of(data, error.start))
    lines = tuple(_without_twins(_lines(text, file)))
    return Document(lines, readers) if lines else _refused(file, "no [pool] section")


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _lines(text: str, file: str) -> Iterator[Entry | Problem]:
    title: str | None = ""
    # Not splitlines(), which also breaks at form feeds and U+2028, and so would not count lines as editors do.
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r").strip(" \t")
        if line.startswith("["):
            found = re.match(r"\[([A-Za-z0-9_.:-]+)\](.*)", line)
            title = found[1] if found else None
            yield from _header(title, found[2] if found else "", f"{file}:{number}", number)
        elif title is not None and line and line[0] not in ";#":
            yield _entry(title, line, f"{file}:{number}", number)


def _header(title: str | None, rest: str, where: str, number: int) -> Iterator[Entry | Problem]:
    if title is None:
        yield Problem(Place(where, number), "a section is written [pool] or [pool:NAME], without spaces")
        return
    place = Place(f"{where}: [{title}]", number)
    yield Entry(title, "", "", place)
    try:
        _check_header(title, rest)
    except ValueError as error:
        yield Problem(place, str(error))


def _check_header(title: str, rest: str) -> None:
    kind, colon, name = title.partition(":")
    if rest:
        raise ValueError(NO_INLINE_COMMENTS if INLINE_COMMENT.search(rest) else "nothing may follow the section")
    if kind not in KINDS:
        close = get_close_matches(kind.lower(), KINDS, 1)
        raise ValueError(f"unknown section; did you mean [{close[0]}{colon}{name}]?" if close else UNKNOWN_SECTION)
    if colon:
        section_name(name)


def section_name(raw: str) -> str:
    """The checked name of a pool or connection: also a directory's name and a word in ``ps``. Raises ``ValueError``."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", raw):
        raise ValueError("a name is up to 64 of A-Z a-z 0-9 _ . - and begins with neither . nor -")
    return raw


def _entry(title: str, line: str, where: str, number: int) -> Entry | Problem:
    key, equals, value = (part.strip(" \t") for part in line.partition("="))
    # The error does not repeat the line, which may be half a URL with its password.
    if not equals or not re.fullmatch(r"[A-Za-z0-9_.-]+", key):
        return Problem(Place(where, number), "is not `key = value` (a value cannot go on over several lines)")
    if not title:
        return Problem(Place(f"{where}: {key}", number), "stands before the first section")
    return Entry(title, key, value, Place(f"{where}: [{title}] {key}", number))


def _without_twins(lines: Iterator[Entry | Problem]) -> Iterator[Entry | Problem]:
    """The lines, with a problem after each that repeats an earlier one."""
    seen: dict[tuple[str, str], int] = {}
    for line in lines:
        yield line
        if isinstance(line, Problem):
            continue
        first = seen.setdefault((line.section, line.key), line.place.line)
        if first != line.place.line:
            yield Problem(line.place, f"is already in line {first}")


def from_environment(environ: Mapping[str, str]) -> Iterator[Entry]:
    """Entries from QUEUEPOOL_POOL_WORKERS and the like; an empty variable counts as unset."""
    for kind in KINDS:
        prefix = f"QUEUEPOOL_{kind.upper()}_"
        for name in sorted(name for name in environ if name.startswith(prefix)):
            key = name.removeprefix(prefix)
            value = environ[name].strip(" \t")
            if value:
                yield Entry(kind, key.lower() if key == key.upper() else key, value, Place(name))


def from_flags(overrides: Mapping[str, str], by: str) -> Iterator[Entry]:
    """Entries from flags by ``section.key``; ``by`` is how errors name a flag, with ``{}`` for the key."""
    for name, value in overrides.items():
        section, _, key = name.rpartition(".")
        yield Entry(section, key, value.strip(" \t"), Place(by.format(key.replace("_", "-"))))
