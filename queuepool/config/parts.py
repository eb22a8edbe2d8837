"""The settings of one pool, connection or schedule, each key from its strongest source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queuepool.config.entries import Entry, Place

#: a plain section of this kind only holds the defaults of the others
_ONLY_DEFAULTS = "schedule"


@dataclass(frozen=True, slots=True)
class Setting:
    """An entry's parsed value, or what is wrong with it."""

    entry: Entry
    value: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One pool, connection or schedule."""

    name: str
    place: Place
    settings: Mapping[str, Setting]

    def fields(self) -> dict[str, Any]:
        """The sound values by key."""
        return {key: one.value for key, one in self.settings.items() if not one.problem}

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
    kind: str,
    keys: Collection[str],
    headers: Sequence[Entry],
    stated: Sequence[Setting],
    forced: Sequence[Setting],
    path: Path | None,
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
        parts[name] = Part(name, place, {one.entry.key: one for one in layers if one.entry.key in keys})
    return parts


def defaults_of(kind: str, keys: Collection[str], stated: Sequence[Setting], forced: Sequence[Setting]) -> Part:
    """What the plain section of this kind says, without a name."""
    layers = [one for one in stated if one.entry.section == kind]
    layers += [one for one in forced if kind_of_section(one.entry) == kind]
    return Part("", Place(f"[{kind}]"), {one.entry.key: one for one in layers if one.entry.key in keys})
