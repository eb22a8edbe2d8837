"""Reads a whole configuration, finds all of its problems at once, and returns plain settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from queuepool.config import urls as config_urls
from queuepool.config import values
from queuepool.config import variables as config_variables
from queuepool.config.connections import KEY_BYTES, connection, contradictions
from queuepool.config.entries import Entry, Place, Problem, from_environment, from_flags, section_name
from queuepool.config.ini_file import Document, read
from queuepool.config.secrets import app_key, open_secrets, previous_keys, signing_keys, url
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.urls import masked as masked  # for code that shows a URL
from queuepool.errors import ConfigError

POOL_KEYS: Mapping[str, values.Parser] = MappingProxyType({
    "connection": section_name, "queue": values.queues, "workers": values.workers,
    "modules": values.modules, "listeners": values.modules, "preload": values.boolean,
    "timeout": values.seconds, "boot_timeout": values.seconds, "grace": values.seconds,
    "tries": values.count, "backoff": values.delays, "max_crashes": values.count,
    "memory": values.memory_limit, "memory_hard": values.megabytes,
    "sleep": values.seconds, "rest": values.seconds,
    "max_jobs": values.count, "max_time": values.seconds, "reserve_ahead": values.ahead,
    "force": values.boolean, "stop_timeout": values.seconds, "give_up": values.seconds,
    "quiet": values.boolean, "verbose": values.boolean, "json": values.boolean,
    "log": values.path, "log_level": values.log_level, "runtime_dir": values.path,
})  # fmt: skip
CONNECTION_KEYS: Mapping[str, values.Parser] = MappingProxyType({
    "driver": lambda raw: raw and values.one_of(raw, "redis", "sql"), "url": url, "prefix": values.text,
    "retry_after": values.some_seconds, "block_for": values.some_seconds, "renew": values.boolean,
    "failed": lambda raw: raw and values.one_of(raw, "redis", "sql", "null"),
    "failed_url": lambda raw: raw and url(raw),
    "timeout": values.some_seconds,
    "restart_key": values.some_text, "control_url": lambda raw: raw and url(raw),
    "maintenance_key": values.text, "maintenance_url": lambda raw: raw and url(raw),
    "signing": lambda raw: values.one_of(raw, "off", "accept", "require"), "signing_keys": signing_keys,
    "app_key": app_key, "previous_keys": previous_keys,
    "cipher": lambda raw: values.one_of(raw.upper(), *KEY_BYTES),
    "outcomes": lambda raw: raw and values.queue(raw), "outcome_class": values.php_class,
    "php_failed": values.boolean, "foreign": lambda raw: values.one_of(raw, "refuse", "ignore"),
    "batches_url": lambda raw: raw and url(raw),
})  # fmt: skip
KEYS = {"pool": POOL_KEYS, "connection": CONNECTION_KEYS}
FIELDS = {"queue": "queues"}
_URLS = ("url", "failed_url", "control_url", "maintenance_url", "batches_url")


@dataclass(frozen=True, slots=True)
class Config:
    """Every pool and connection of a configuration; ``path`` is its file, None without one."""

    pools: tuple[PoolSettings, ...]
    connections: Mapping[str, ConnectionSettings]
    path: Path | None


@dataclass(frozen=True, slots=True)
class _Setting:
    """An entry's parsed value, or what is wrong with it."""

    entry: Entry
    value: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """The settings of one pool or connection, each key from its strongest source."""

    name: str
    place: Place
    settings: Mapping[str, _Setting]

    def fields(self) -> dict[str, Any]:
        return {FIELDS.get(key, key): one.value for key, one in self.settings.items() if not one.problem}

    def is_sound(self, *keys: str) -> bool:
        return not any(self.settings[key].problem for key in keys if key in self.settings)

    def place_of(self, key: str) -> Place:
        found = self.settings.get(key)
        return found.entry.place if found else Place(f"{self.place.label} {key}", self.place.line)


def load(
    path: Path | None,
    overrides: Mapping[str, str] = {},
    environ: Mapping[str, str] = os.environ,
    *,
    by: str = "--{}",
) -> Config:
    """The effective configuration. ``overrides`` are raw flags by ``section.key``; ``by`` is how errors name a flag.

    Every key takes its value from the flag, else the environment, else the file, else its default. Raises one
    ``ConfigError`` with a line for each problem.
    """
    file, folder = (read(path), path.parent) if path else (Document(), Path())
    stated = [_parse(entry, environ, folder) for entry in file.entries() if _kind(entry) in KEYS]
    forced = [_parse(entry, environ) for entry in (*from_environment(environ), *from_flags(overrides, by))]
    links, parts = (_parts(kind, file.headers(), stated, forced, path) for kind in ("connection", "pool"))
    connections = {name: connection(name, part.fields(), folder) for name, part in links.items()}
    pools = tuple(_pool(part, connections, path) for part in parts.values())
    problems = [*file.problems(), *open_secrets(file, path)]
    problems += [Problem(one.entry.place, one.problem) for one in (*stated, *forced) if one.problem]
    problems += [problem for name, part in links.items() for problem in _link_problems(connections[name], part)]
    for pool, part in zip(pools, parts.values(), strict=True):
        problems += _pool_problems(pool, part, links)
    _raise_all(problems)
    return Config(pools, MappingProxyType(connections), path)


def _kind(entry: Entry) -> str:
    return entry.section.partition(":")[0]


def _parse(entry: Entry, environ: Mapping[str, str], folder: Path = Path()) -> _Setting:
    """``folder`` is the base of the relative path of an SQLite file or runtime directory, not the working directory."""
    parse = KEYS.get(_kind(entry), {}).get(entry.key)
    if parse is None:
        return _Setting(entry, problem=f"unknown key{_hint(entry)}")
    value = entry.value
    try:
        if config_variables.holds_control_characters(value):
            raise ValueError("contains a tab, a line break or another control character")
        value = config_variables.expanded(value, environ)
        parsed = parse(config_urls.within(folder, value) if entry.key in _URLS else value)
        is_place = entry.key == "runtime_dir" and isinstance(parsed, Path)
        return _Setting(entry, folder / parsed if is_place else parsed)  # type: ignore[operator]
    except ValueError as error:
        has_comment = values.INLINE_COMMENT.search(entry.value)
        problem = str(error) if value == entry.value else values.hidden(str(error))
        return _Setting(entry, problem=values.NO_INLINE_COMMENTS if has_comment else problem)


def _hint(entry: Entry) -> str:
    for kind, keys in KEYS.items():
        if kind != _kind(entry) and entry.key in keys:
            return f"; it belongs in [{kind}]"
    close = get_close_matches(entry.key.lower().replace("-", "_"), KEYS.get(_kind(entry), ()), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _parts(
    kind: str, headers: Sequence[Entry], stated: Sequence[_Setting], forced: Sequence[_Setting], path: Path | None
) -> dict[str, _Part]:
    """The pools or the connections by name, in the file's order."""
    matching = [one for one in stated if _kind(one.entry) == kind]
    places = {header.section: header.place for header in headers if _kind(header) == kind}
    plain = places.pop(kind, Place(f"{path}: [{kind}]" if path else f"[{kind}]"))
    # A [connection] with a URL is a connection, not only the defaults of the others: otherwise the first
    # [connection:NAME] would take over every pool that names none.
    if not places or any(one.entry.section == kind and one.entry.key == "url" for one in matching):
        places = {f"{kind}:default": plain} | places
    parts = {}
    for title, place in places.items():
        layers = [one for one in matching if one.entry.section == kind]
        layers += [one for one in matching if one.entry.section == title]
        layers += [one for one in forced if _kind(one.entry) == kind]
        name = title.partition(":")[2]
        parts[name] = _Part(name, place, {one.entry.key: one for one in layers if one.entry.key in KEYS[kind]})
    return parts


def _pool(part: _Part, connections: Mapping[str, ConnectionSettings], path: Path | None) -> PoolSettings:
    fields = part.fields() | {"connection": connections.get(_link(part, connections), ConnectionSettings())}
    return PoolSettings(name=part.name, config=path, **fields)


def _link(part: _Part, connections: Iterable[str]) -> str:
    """The name of the pool's connection: as set, else the only one, else ``default``."""
    named = part.settings.get("connection")
    names = list(connections)
    return str(named.value) if named else names[0] if len(names) == 1 else "default"


def _link_problems(link: ConnectionSettings, part: _Part) -> Iterator[Problem]:
    if link.signing != "off" and not link.signing_keys and part.is_sound("signing_keys"):
        yield Problem(part.place_of("signing"), f"{link.signing} needs signing_keys")
    if part.is_sound(*CONNECTION_KEYS):
        yield from (Problem(part.place_of(key), text) for key, text in contradictions(link, part.fields()))


def _pool_problems(pool: PoolSettings, part: _Part, links: Mapping[str, _Part]) -> Iterator[Problem]:
    link = links.get(_link(part, links))
    if not link and part.is_sound("connection"):
        names = ", ".join(links)
        yield Problem(part.place_of("connection"), f"there is no connection {_link(part, links)!r}, only: {names}")
    if part.is_sound("memory", "memory_hard") and 0 < pool.memory_hard < pool.memory.megabytes:
        yield Problem(part.place_of("memory_hard"), f"{pool.memory_hard:.10g} is below memory ({pool.memory})")
    if pool.connection.outcomes in pool.queues:
        why = f"{pool.connection.outcomes} is the queue of `outcomes`, which a worker of Laravel must serve"
        yield Problem(part.place_of("queue"), why)
    if link and part.is_sound("timeout", "grace") and link.is_sound("renew", "retry_after"):
        yield from _lease_problems(pool, part.place_of("timeout"))


def _lease_problems(pool: PoolSettings, place: Place) -> Iterator[Problem]:
    """Without renewal, a lease must outlast the job's timeout and the grace, or another worker starts the job."""
    lease = pool.connection.retry_after
    if pool.connection.renew or (pool.timeout and pool.timeout + pool.grace < lease):
        return
    limit = f"{pool.timeout:.10g} with grace {pool.grace:.10g}" if pool.timeout else "0, no limit,"
    max_timeout = lease - pool.grace - 1
    remedy = f"at most {max_timeout:.10g}" if max_timeout > 0 else "raise retry_after"
    why = f"is not below retry_after ({lease:.10g}) and renew is off; jobs would run twice"
    yield Problem(place, f"{limit} {why}; {remedy}, or renew = yes")


def _raise_all(problems: Sequence[Problem]) -> None:
    ordered = sorted(problems, key=lambda problem: problem.place.line)
    # Pools share the lines of [pool], and so share its problems.
    lines = dict.fromkeys(str(ConfigError(problem.place.label, problem.text)) for problem in ordered)
    if lines:
        raise ConfigError("", "\n".join(lines))
