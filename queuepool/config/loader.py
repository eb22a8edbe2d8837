"""Reads a whole configuration, finds all of its problems at once, and returns plain settings."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from queuepool.config import alerts, application, secrets, values, words
from queuepool.config import urls as config_urls
from queuepool.config.connections import NO_TAG, connection, contradictions, tag_of
from queuepool.config.entries import (
    Entry,
    Parsed,
    Part,
    Place,
    Problem,
    defaults_of,
    from_environment,
    from_flags,
    kind_of_section,
    parts_of,
    read,
)
from queuepool.config.settings import KEYS, URL_KEYS, ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.config.urls import masked as masked  # for code that shows a URL
from queuepool.config.web import KIND as WEB
from queuepool.config.web import WebSettings
from queuepool.errors import ConfigError

_KINDS = ("connection", "pool", "schedule")
#: pairs of a schedule's keys, of which exactly one is needed
_EITHER = (("cron", "every"), ("job", "object"))
#: keys of pools whose workers run one job at a time, and why they contradict a concurrency above 1
_ONE_BY_ONE = {
    "preload": "the workers of a template run one job at a time",
    "reserve_ahead": "every reserved job starts at once",
    "rest": "there is no moment between two jobs",
}
#: keys of pools that scale by themselves
_BOUNDS = ("min_workers", "max_workers")
#: keys that the defaults of schedules cannot hold
_SCHEDULES_OWN = ("cron", "every", "job", "object", "data")


@dataclass(frozen=True, slots=True)
class Config:
    """Every pool, connection and schedule. ``path``: their file; ``name``: that, or what is in its place."""

    pools: tuple[PoolSettings, ...]
    connections: Mapping[str, ConnectionSettings]
    path: Path | None
    schedules: tuple[ScheduleSettings, ...] = ()
    name: str = field(default="", compare=False)
    web: WebSettings = field(default_factory=WebSettings, compare=False)


def load(
    path: Path | None,
    overrides: Mapping[str, str] = {},
    environ: Mapping[str, str] = os.environ,
    *,
    by: str = "--{}",
) -> Config:
    """The effective configuration: of the file, or without one of the program's own settings.

    ``overrides`` are raw flags by ``section.key``; ``by`` is how errors name a flag. Every key takes its value from the
    flag, else the environment, else the file, else its default. Raises one ``ConfigError``, a line for each problem.
    """
    source = application.Source(read(path), path.parent, str(path)) if path else application.source()
    file, folder = source.document, source.folder
    stated = [_parse(entry, environ, folder) for entry in file.entries() if kind_of_section(entry) in KEYS]
    forced = [_parse(entry, environ) for entry in (*from_environment(environ), *from_flags(overrides, by))]
    links, parts, plans = (parts_of(kind, file.headers(), stated, forced, path) for kind in _KINDS)
    made_by = application.migrate_command(source.typed, path, overrides)
    connections = {name: connection(name, part.fields(), folder, made_by) for name, part in links.items()}
    schedules = tuple(_schedule(part, _linked(part, connections)) for part in plans.values())
    plain = defaults_of("schedule", stated, forced)
    defaults = _schedule(plain, _linked(plain, connections))
    pools = tuple(replace(_pool(part, connections, schedules, path), job_schedules=defaults) for part in parts.values())
    problems = [*file.problems(), *secrets.open_secrets(file, path)]
    problems += [Problem(one.entry.place, one.problem) for one in (*stated, *forced) if one.problem]
    problems += [problem for name, part in links.items() for problem in _link_problems(connections[name], part)]
    for pool, part in zip(pools, parts.values(), strict=True):
        problems += _pool_problems(pool, part, links)
    used = {_link(part, links) for part in parts.values()}
    problems += [one for part in plans.values() for one in _schedule_problems(part, _link(part, links), links, used)]
    problems += [*_misplaced(stated), *_shared_addresses(pools, parts)]
    if (alarms := alerts.section(file.headers(), stated, forced)) is not None:
        problems += alerts.problems_of(alarms, {queue for pool in pools for queue in pool.queues})
        pools = tuple(replace(pool, alerts=alerts.alerts(alarms, pool.queues)) for pool in pools)
    _raise_all(problems)
    web = WebSettings(**defaults_of(WEB, stated, forced).fields())
    return Config(pools, MappingProxyType(connections), path, schedules, source.name, web)


def _parse(entry: Entry, environ: Mapping[str, str], folder: Path = Path()) -> Parsed:
    """``folder`` is the base of the relative path of an SQLite file or runtime directory, not the working directory."""
    said = KEYS.get(kind_of_section(entry), {}).get(entry.key)
    if said is None:
        return Parsed(entry, problem=f"unknown key{_hint(entry)}")
    value = entry.value
    try:
        if secrets.holds_control_characters(value):
            raise ValueError("contains a tab, a line break or another control character")
        value = secrets.expanded(value, environ)
        parsed = said.parse(config_urls.within(folder, value) if entry.key in URL_KEYS else value)
        is_place = entry.key in ("runtime_dir", "users") and isinstance(parsed, Path)
        return Parsed(entry, said.name, folder / parsed if is_place else parsed)  # type: ignore[operator]
    except ValueError as error:
        has_comment = values.INLINE_COMMENT.search(entry.value)
        problem = str(error) if value == entry.value else values.hidden(str(error))
        return Parsed(entry, said.name, problem=values.NO_INLINE_COMMENTS if has_comment else problem)


def _hint(entry: Entry) -> str:
    for kind, keys in KEYS.items():
        if kind != kind_of_section(entry) and entry.key in keys:
            return f"; it belongs in [{kind}]"
    known, key = KEYS.get(kind_of_section(entry), ()), entry.key.lower().replace("-", "_")
    close = [words.KEYS[key]] if words.KEYS.get(key) in known else get_close_matches(key, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _pool(
    part: Part,
    connections: Mapping[str, ConnectionSettings],
    schedules: Sequence[ScheduleSettings],
    path: Path | None,
) -> PoolSettings:
    linked = _linked(part, connections)
    own = tuple(one for one in schedules if one.connection == linked)
    fields = _with_weights(part.fields())
    return PoolSettings(name=part.name, config=path, **{**fields, "connection": linked, "schedules": own})


def _with_weights(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with the weights of the queues by themselves."""
    if "queues" not in fields:
        return fields
    parts = [queue.partition("*") for queue in fields["queues"]]
    weights = tuple(int(weight) for _, _, weight in parts if weight)
    return {**fields, "queues": tuple(name for name, _, _ in parts), "weights": weights}


def _schedule(part: Part, connection: ConnectionSettings) -> ScheduleSettings:
    """The settings of a schedule; useless if the part has problems."""
    return ScheduleSettings(name=part.name, **{**part.fields(), "connection": connection})


def _linked(part: Part, connections: Mapping[str, ConnectionSettings]) -> ConnectionSettings:
    return connections.get(_link(part, connections), ConnectionSettings())


def _link(part: Part, connections: Iterable[str]) -> str:
    """The name of a pool's or a schedule's connection: as set, else the only one, else ``default``."""
    named = part.settings.get("connection")
    names = list(connections)
    return str(named.value) if named else names[0] if len(names) == 1 else "default"


def _link_problems(link: ConnectionSettings, part: Part) -> Iterator[Problem]:
    if link.signing != "off" and not link.signing_keys and part.is_sound("signing_keys"):
        yield Problem(part.place_of("signing"), f"{link.signing} needs signing_keys")
    if part.is_sound(*KEYS["connection"]):
        yield from (Problem(part.place_of(key), text) for key, text in contradictions(link))


def _pool_problems(pool: PoolSettings, part: Part, links: Mapping[str, Part]) -> Iterator[Problem]:
    link = links.get(_link(part, links))
    if not link and part.is_sound("connection"):
        names = ", ".join(links)
        yield Problem(part.place_of("connection"), f"there is no connection {_link(part, links)!r}, only: {names}")
    if part.is_sound("memory", "memory_hard") and 0 < pool.memory_hard < pool.memory.megabytes:
        yield Problem(part.place_of("memory_hard"), f"{pool.memory_hard:.10g} is below memory ({pool.memory})")
    if part.is_sound("timeout", "soft_timeout") and 0 < pool.timeout <= pool.soft_timeout:
        why = f"{pool.soft_timeout:.10g} is not below timeout ({pool.timeout:.10g}): it would never be reached"
        yield Problem(part.place_of("soft_timeout"), why)
    if pool.connection.outcomes in pool.queues:
        why = f"{pool.connection.outcomes} is the queue of `outcomes`, which a Laravel worker must serve"
        yield Problem(part.place_of("queue"), why)
    if pool.horizon and part.is_sound("horizon", "metrics") and link and link.is_sound("url"):
        yield from (Problem(part.place_of("horizon"), text) for text in _horizon_problems(pool))
    yield from _concurrency_problems(pool, part)
    yield from _scaling_problems(pool, part)
    if link and part.is_sound("timeout", "grace") and link.is_sound("renew", "retry_after"):
        yield from _lease_problems(pool, part.place_of("timeout"))


def _horizon_problems(pool: PoolSettings) -> Iterator[str]:
    """Why Horizon could not show it."""
    url = pool.connection.url
    if config_urls.kind_of(url) != "redis":
        yield "Horizon is on Redis, and so must be the queue of a pool that it shows"
    elif config_urls.is_cluster(url) and not tag_of(pool.horizon):
        yield NO_TAG
    if not pool.metrics:
        yield "needs metrics = yes: it shows what the metrics count"


def _concurrency_problems(pool: PoolSettings, part: Part) -> Iterator[Problem]:
    """Settings that contradict many jobs in one worker, and settings that need them."""
    if not part.is_sound("concurrency", "loop", *_ONE_BY_ONE):
        return
    if pool.concurrency == 1:
        if pool.loop != "asyncio":
            yield Problem(part.place_of("loop"), f"{pool.loop} is for workers with a concurrency above 1")
        return
    for key, why in _ONE_BY_ONE.items():
        if getattr(pool, key):
            yield Problem(part.place_of(key), f"contradicts concurrency ({pool.concurrency}): {why}")


def _scaling_problems(pool: PoolSettings, part: Part) -> Iterator[Problem]:
    """Settings that contradict a number of workers that changes by itself."""
    given = [key for key in _BOUNDS if getattr(pool, key)]
    if not given or not part.is_sound("workers", "metrics", *_BOUNDS):
        return
    if "workers" in part.settings and part.settings["workers"].entry.value == "auto":
        yield Problem(part.place_of(given[0]), "contradicts workers = auto: say with how many workers the pool begins")
        return
    fewest, most = pool.bounds
    if pool.min_workers and pool.max_workers and fewest > most:
        yield Problem(part.place_of("min_workers"), f"{fewest} is above max_workers ({most})")
    elif fewest > pool.workers:
        yield Problem(part.place_of("min_workers"), f"{fewest} is above workers ({pool.workers}): it begins with these")
    elif most < pool.workers:
        yield Problem(part.place_of("max_workers"), f"{most} is below workers ({pool.workers}): it begins with these")
    if not pool.metrics:
        yield Problem(part.place_of(given[0]), "needs metrics = yes: else nobody measures what waits")


def _schedule_problems(part: Part, link: str, links: Collection[str], used: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a schedule beyond its single values.

    ``link`` names its connection, ``links`` all that there are, ``used`` those of the pools.
    """
    given = part.fields()
    for one, other in _EITHER:
        if not part.is_sound(one, other):
            continue
        if given.get(one) and given.get(other):
            yield Problem(part.place_of(other), f"contradicts {one}: give only one of them")
        elif not given.get(one) and not given.get(other):
            yield Problem(part.place, f"has neither {one} nor {other}")
    if given.get("object") and not isinstance(json.loads(given.get("data") or "{}"), dict):
        yield Problem(part.place_of("data"), "is not a JSON object, as the properties of `object` need")
    if link not in links and part.is_sound("connection"):
        yield Problem(part.place_of("connection"), f"there is no connection {link!r}, only: {', '.join(links)}")
    elif link not in used and part.is_sound("connection"):
        yield Problem(part.place_of("connection"), f"no pool uses connection {link!r}, so nothing would push the job")


def _misplaced(stated: Iterable[Parsed]) -> Iterator[Problem]:
    """Keys among the defaults that only a single schedule can have."""
    for one in stated:
        if one.entry.section == "schedule" and one.entry.key in _SCHEDULES_OWN and one.value:
            yield Problem(one.entry.place, "belongs in [schedule:NAME]; [schedule] only holds defaults")


def _shared_addresses(pools: Iterable[PoolSettings], parts: Mapping[str, Part]) -> Iterator[Problem]:
    """Two processes cannot listen on one address."""
    first: dict[str, str] = {}
    for pool in pools:
        if pool.listen and (owner := first.setdefault(pool.listen, pool.name)) != pool.name:
            why = f"{pool.listen} is also the address of pool {owner}: each pool needs its own"
            yield Problem(parts[pool.name].place_of("listen"), why)


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
