"""Reads a configuration whole, finds everything that is wrong with it at once, and gives plain settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unicodedata import category

from queuepool import config_values as values
from queuepool.config_file import Document, Entry, Header, Place, Problem, read
from queuepool.config_values import masked as masked  # for whoever shows a URL
from queuepool.errors import ConfigError
from queuepool.settings import ConnectionSettings, PoolSettings

POOL_KEYS: Mapping[str, values.Parser] = MappingProxyType({
    "connection": values.section_name, "queue": values.queues, "workers": values.workers,
    "modules": values.modules, "listeners": values.modules,
    "timeout": values.seconds, "grace": values.seconds,
    "tries": values.count, "backoff": values.delays, "max_crashes": values.count,
    "memory": values.megabytes, "memory_hard": values.megabytes,
    "sleep": values.seconds, "rest": values.seconds,
    "max_jobs": values.count, "max_time": values.seconds,
    "force": values.boolean, "stop_timeout": values.seconds,
    "quiet": values.boolean, "json": values.boolean,
    "log": values.path, "runtime_dir": values.path,
})  # fmt: skip
CONNECTION_KEYS: Mapping[str, values.Parser] = MappingProxyType({
    "driver": values.driver, "url": values.url, "prefix": values.text,
    "retry_after": values.some_seconds, "block_for": values.some_seconds, "renew": values.boolean,
    "failed": values.failed_store,
    "restart_key": values.some_text, "control_url": values.optional_url,
})  # fmt: skip
KEYS = {"pool": POOL_KEYS, "connection": CONNECTION_KEYS}
FIELDS = {"queue": "queues"}
SECTIONS = "the sections are [pool], [pool:NAME], [connection] and [connection:NAME]"


@dataclass(frozen=True, slots=True)
class Config:
    """Every pool and connection of a configuration; ``path`` is its file, None without one."""

    pools: tuple[PoolSettings, ...]
    connections: Mapping[str, ConnectionSettings]
    path: Path | None


@dataclass(frozen=True, slots=True)
class _Setting:
    """A key's parsed value and where it was written, or what is wrong with it."""

    section: str
    key: str
    place: Place
    value: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """What is said of one pool or connection, the strongest source of each key having won."""

    name: str
    place: Place
    settings: Mapping[str, _Setting]

    def fields(self) -> dict[str, Any]:
        return {FIELDS.get(key, key): one.value for key, one in self.settings.items() if not one.problem}

    def is_sound(self, *keys: str) -> bool:
        return not any(self.settings[key].problem for key in keys if key in self.settings)

    def place_of(self, key: str) -> Place:
        found = self.settings.get(key)
        return found.place if found else Place(f"{self.place.label} {key}", self.place.line)


def load(path: Path | None, overrides: Mapping[str, str] = {}, environ: Mapping[str, str] = os.environ) -> Config:
    """The configuration in force; ``overrides`` are flags by ``section.key``, raw.

    Every key takes its value from the flag, else the environment, else the file, else its default. Raises one
    ConfigError with a line for each problem.
    """
    file = read(path) if path else Document()
    stated = [_parse(entry) for entry in file.entries() if _kind(entry.section) in KEYS]
    forced = [_parse(entry) for entry in (*_environment(environ), *_flags(overrides))]
    source = f"{path}: " if path else ""
    links = _parts("connection", file.headers(), stated, forced, source)
    parts = _parts("pool", file.headers(), stated, forced, source)
    connections = {name: ConnectionSettings(name=name, **part.fields()) for name, part in links.items()}
    pools = tuple(_pool(part, connections) for part in parts.values())
    problems = [*file.problems(), *_file_problems(file, path)]
    problems += [Problem(one.place, one.problem) for one in (*stated, *forced) if one.problem]
    for pool, part in zip(pools, parts.values(), strict=True):
        problems += _pool_problems(pool, part, links)
    _raise_all(problems)
    return Config(pools, MappingProxyType(connections), path)


def _raise_all(problems: Sequence[Problem]) -> None:
    ordered = sorted(problems, key=lambda problem: problem.place.line)
    # Pools share the lines of [pool], and so their problems.
    lines = dict.fromkeys(str(ConfigError(problem.place.label, problem.text)) for problem in ordered)
    if lines:
        raise ConfigError("", "\n".join(lines))


def _kind(section: str) -> str:
    return section.partition(":")[0]


def _environment(environ: Mapping[str, str]) -> Iterator[Entry]:
    for kind in KEYS:
        prefix = f"QUEUEPOOL_{kind.upper()}_"
        for name in sorted(name for name in environ if name.startswith(prefix)):
            key = name.removeprefix(prefix)
            value = environ[name].strip(" \t")
            if value:
                yield Entry(kind, key.lower() if key == key.upper() else key, value, Place(name))


def _flags(overrides: Mapping[str, str]) -> Iterator[Entry]:
    for name, value in overrides.items():
        section, _, key = name.rpartition(".")
        yield Entry(section, key, value.strip(" \t"), Place(f"--{key.replace('_', '-')}"))


def _parse(entry: Entry) -> _Setting:
    parse = KEYS.get(_kind(entry.section), {}).get(entry.key)
    if parse is None:
        return _Setting(entry.section, entry.key, entry.place, problem=_unknown_key(entry))
    try:
        if any(category(letter) in ("Cc", "Cs") for letter in entry.value):
            raise ValueError("contains a tab, a line break or another control character")
        return _Setting(entry.section, entry.key, entry.place, parse(entry.value))
    except ValueError as error:
        problem = values.NO_INLINE_COMMENTS if values.INLINE_COMMENT.search(entry.value) else str(error)
        return _Setting(entry.section, entry.key, entry.place, problem=problem)
