"""Entries of a configuration: raw values from the file, the environment and flags, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

#: the kinds of sections
KINDS = ("pool", "connection", "schedule", "alerts")


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


def section_name(raw: str) -> str:
    """The checked name of a pool or connection: also a directory's name and a word in ``ps``. Raises ``ValueError``."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", raw):
        raise ValueError("a name is up to 64 of A-Z a-z 0-9 _ . - and begins with neither . nor -")
    return raw
