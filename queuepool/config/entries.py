"""Entries of a configuration: values from an INI file, the environment and flags, each with its place, and their parts.

A file's form is checked here, not what its values mean.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from queuepool.config.values import INLINE_COMMENT, NO_INLINE_COMMENTS, section_name

#: the kinds of sections
KINDS = ("pool", "connection", "schedule", "alerts", "web")
#: a plain section of this kind only holds the defaults of the others
_ONLY_DEFAULTS = "schedule"
UNKNOWN_SECTION = (
    "unknown section; there are [pool], [pool:NAME], [connection], [connection:NAME], [schedule], [schedule:NAME], "
    "[alerts] and [web]"
)
MAX_BYTES = 1024 * 1024


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


@dataclass(frozen=True, slots=True)
class Parsed:
    """An entry's value and the field that it is for, or what is wrong with it."""

    entry: Entry
    name: str = ""
    value: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One pool, connection or schedule."""

    name: str
    place: Place
    settings: Mapping[str, Parsed]

    def fields(self) -> dict[str, Any]:
        """The sound values by field."""
        return {one.name: one.value for one in self.settings.values() if not one.problem}

    def is_sound(self, *keys: str) -> bool:
        """Whether none of these keys has a problem."""
        return not any(self.settings[key].problem for key in keys if key in self.settings)

    def place_of(self, key: str) -> Place:
        """Where the key is set, else the section with the key's name."""
        found = self.settings.get(key)
        return found.entry.place if found else Place(f"{self.place.label} {key}", self.place.line)


def kind_of_section(entry: Entry) -> str:
    """The kind of the section that the entry is in: the part before a colon."""
    return entry.section.partition(":")[0]


def parts_of(
    kind: str, headers: Sequence[Entry], stated: Sequence[Parsed], forced: Sequence[Parsed], path: Path | None
) -> dict[str, Part]:
    """The pools, connections or schedules by name, in the file's order."""
    matching = [one for one in stated if kind_of_section(one.entry) == kind]
    places = {header.section: header.place for header in headers if kind_of_section(header) == kind}
    plain = places.pop(kind, Place(f"{path}: [{kind}]" if path else f"[{kind}]"))
    # A [connection] with a URL is a connection, not only the defaults of the others: otherwise the first
    # [connection:NAME] would take over every pool that names none.
    has_url = any(one.entry.section == kind and one.entry.key == "url" for one in matching)
    if kind != _ONLY_DEFAULTS and (not places or has_url):
        places = {f"{kind}:default": plain} | places
    parts = {}
    for title, place in places.items():
        layers = [one for one in matching if one.entry.section == kind]
        layers += [one for one in matching if one.entry.section == title]
        layers += [one for one in forced if kind_of_section(one.entry) == kind]
        name = title.partition(":")[2]
        parts[name] = Part(name, place, {one.entry.key: one for one in layers})
    return parts


def defaults_of(kind: str, stated: Sequence[Parsed], forced: Sequence[Parsed]) -> Part:
    """The section of this kind without a name, which holds defaults."""
    layers = [one for one in stated if one.entry.section == kind]
    layers += [one for one in forced if kind_of_section(one.entry) == kind]
    return Part("", Place(f"[{kind}]"), {one.entry.key: one for one in layers})


class Readers(NamedTuple):
    """Which users can read a file."""

    #: every user of this host can read it
    include_everyone: bool = False
    #: its mode cannot be changed: its mount is read-only, as that of a container's secrets is
    cannot_change: bool = False

    @classmethod
    def of(cls, file: int | str) -> Readers:
        """The readers of an open descriptor or of a path. Raises ``OSError``."""
        cannot_change = bool(os.statvfs(file).f_flag & os.ST_RDONLY)
        return cls(bool(os.stat(file).st_mode & stat.S_IROTH), cannot_change)


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
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise ValueError("is larger than 1 MB, the most that is read")
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
    lines = tuple(_with_repeats_reported(_lines(text, file)))
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
        check_header(title, rest)
    except ValueError as error:
        yield Problem(place, str(error))


def check_header(title: str, rest: str = "") -> None:
    """Raises ``ValueError`` for a title that no section has, or if something follows it."""
    kind, colon, name = title.partition(":")
    if rest:
        raise ValueError(NO_INLINE_COMMENTS if INLINE_COMMENT.search(rest) else "nothing may follow a section's name")
    if kind not in KINDS:
        close = get_close_matches(kind.lower(), KINDS, 1)
        raise ValueError(f"unknown section; did you mean [{close[0]}{colon}{name}]?" if close else UNKNOWN_SECTION)
    if colon and kind == "alerts":
        raise ValueError("there is only one section of alerts, for all pools: [alerts]")
    if colon and kind == "web":
        raise ValueError("there is only one dashboard, for all pools: [web]")
    if colon:
        section_name(name)


def _entry(title: str, line: str, where: str, number: int) -> Entry | Problem:
    key, equals, value = (part.strip(" \t") for part in line.partition("="))
    # The error does not repeat the line, which may be half a URL with its password.
    if not equals or not re.fullmatch(r"[A-Za-z0-9_.-]+", key):
        return Problem(Place(where, number), "is not `key = value` (a value cannot span several lines)")
    if not title:
        return Problem(Place(f"{where}: {key}", number), "stands before the first section")
    return Entry(title, key, value, Place(f"{where}: [{title}] {key}", number))


def _with_repeats_reported(lines: Iterator[Entry | Problem]) -> Iterator[Entry | Problem]:
    """The lines, with a problem after each that repeats an earlier one."""
    seen: dict[tuple[str, str], int] = {}
    for line in lines:
        yield line
        if isinstance(line, Problem):
            continue
        first = seen.setdefault((line.section, line.key), line.place.line)
        if first != line.place.line:
            yield Problem(line.place, f"is already in line {first}")
