"""Entries of a configuration: values from the file, the environment and flags, each with its place, and their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: the kinds of sections
KINDS = ("pool", "connection", "schedule", "alerts")
#: a plain section of this kind only holds the defaults of the others
_ONLY_DEFAULTS = "schedule"


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
    """The kind of the section that the entry is in: what stands before a colon."""
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
    """What the plain section of this kind says, without a name."""
    layers = [one for one in stated if one.entry.section == kind]
    layers += [one for one in forced if kind_of_section(one.entry) == kind]
    return Part("", Place(f"[{kind}]"), {one.entry.key: one for one in layers})
