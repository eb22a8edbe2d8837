"""A connection's settings from its values: defaults by URL, contradictions, and what they lead to: drivers, places."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from queuepool.config import urls as config_urls
from queuepool.config.secrets import KEY_BYTES
from queuepool.config.settings import TABLE_KEYS, URL_KEYS, ConnectionSettings
from queuepool.config.urls import is_cluster, kind_of, place_of, scheme_of
from queuepool.errors import ConfigError

#: the default URLs of a queue
EMBEDDED, REDIS = "sqlite:///queuepool.db", "redis://127.0.0.1:6379/0"
#: what is wrong with a prefix on a cluster
NO_TAG = "has no hash tag, which keeps all keys in one slot of the cluster: write one, such as {app}:"
#: the hash tag of the keys that belong to no queue, where each queue has a tag of its own
HOME = "queuepool"
_RESTART = "illuminate:queue:restart"
#: by scheme: our extra, and the packages that it installs
_EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "postgresql": ("sql-postgres", "psycopg"),
    "mysql": ("sql-mysql", "pymysql"),
    "mariadb": ("sql-mysql", "pymysql"),
})  # fmt: skip


def connection(name: str, given: Mapping[str, Any], folder: Path, migrate: str) -> ConnectionSettings:
    """The settings of a connection from its values; ``folder`` holds the default SQLite file.

    ``migrate`` is the command that makes its tables. Raises ``ConfigError``.
    """
    fields = dict(given)
    if "url" not in fields:
        fields["url"] = REDIS if given.get("driver") == "redis" else _embedded(folder)
    if is_cluster(fields["url"]) and not fields.get("control_url"):
        fields.setdefault("restart_key", f"{_in_one_slot(fields.get('prefix', ''))}{_RESTART}")
    # The default URL means the same when it is written out.
    is_ours = scheme_of(fields["url"]) == "sqlite" and fields["url"] == _embedded(folder)
    return ConnectionSettings(name=name, embedded=is_ours, migrate=migrate, **fields)


def contradictions(settings: ConnectionSettings) -> Iterator[tuple[str, str]]:
    """A (key, problem) pair for each value that contradicts another."""
    if settings.driver and settings.driver != kind_of(settings.url):
        yield "driver", f"{settings.driver} contradicts the url, which leads to {kind_of(settings.url)}"
    if settings.prefix and "redis" not in map(kind_of, urls_of(settings).values()):
        yield "prefix", "is for keys in Redis: leave it out, a database's tables are named by jobs_table and so on"
    if settings.wait_replicas and kind_of(settings.url) != "redis":
        yield "wait_replicas", "is for Redis: PostgreSQL has synchronous_commit and synchronous_standby_names"
    if settings.flow_reports and settings.flow_reports == settings.outcomes:
        yield "flow_reports", f"{settings.outcomes} is the queue of `outcomes`, which a Laravel worker must serve"
    yield from _slot_contradictions(settings)
    yield from _table_contradictions(settings)
    yield from _failed_contradictions(settings)
    yield from _key_contradictions(settings)


def check_drivers(settings: ConnectionSettings) -> None:
    """Raise ``ConfigError`` when a package that it needs is not installed."""
    for key, url in urls_of(settings).items():
        extra, *packages = _EXTRAS.get(scheme_of(url), ("",))
        # Found, not imported: commands that only inspect a pool do not need them.
        if not all(map(find_spec, packages)):
            where = f"connection {settings.name}: {key}"
            raise ConfigError(where, f"{scheme_of(url)}:// needs pip install 'queuepool-worker[{extra}]'")
    if settings.app_key and not find_spec("cryptography"):
        raise ConfigError(f"connection {settings.name}: app_key", "needs pip install 'queuepool-worker[encrypted]'")


def identity_of(settings: ConnectionSettings) -> str:
    """An id of the store in which its receipts are valid; reveals no secret."""
    prefix = settings.prefix if kind_of(settings.url) == "redis" else _other_table(settings)
    return hashlib.sha256(f"{place_of(settings.url)} {prefix}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _other_table(settings: ConnectionSettings) -> str:
    """The table of jobs; empty for the usual one, which the ids of older versions left out."""
    table = f"{settings.schema}.{settings.jobs_table}"
    return "" if table == ".jobs" else table


def _embedded(folder: Path) -> str:
    try:
        return config_urls.url(config_urls.within(folder, EMBEDDED))
    except ValueError as error:
        raise ConfigError(EMBEDDED, str(error)) from error


def urls_of(settings: ConnectionSettings) -> dict[str, str]:
    """Its URLs by key, without those that are not set."""
    found = {key: getattr(settings, key) for key in URL_KEYS}
    return {key: url for key, url in found.items() if url}


def lock_home_of(settings: ConnectionSettings) -> str:
    """The URL at which Laravel's default cache keeps its unique locks: the queue's, unless its cache is elsewhere."""
    is_other = settings.control_url and kind_of(settings.control_url) != kind_of(settings.url)
    return settings.lock_url or (settings.control_url if is_other else settings.url)


def lock_urls_of(settings: ConnectionSettings) -> list[str]:
    """Where Laravel's locks may be, if not at ``url``: those of its default cache first, then of ``uniqueVia()``."""
    home, control = lock_home_of(settings), settings.control_url
    found = [home] if home != settings.url else []
    known = map(kind_of, (settings.url, *found))
    return [*found, control] if control and kind_of(control) not in known else found


def tag_of(name: str) -> str:
    """The hash tag of keys that begin like this, by which a cluster chooses their slot; empty if there is none."""
    begin = name.find("{")
    end = name.find("}", begin + 1)
    return name[begin + 1 : end] if 0 <= begin < end else ""


def is_spread(settings: ConnectionSettings) -> bool:
    """Whether each queue is in the slot of its own hash tag: on a cluster, unless the prefix has one for all keys."""
    return is_cluster(settings.url) and not tag_of(settings.prefix)


def home_of(settings: ConnectionSettings) -> str:
    """What the keys begin with that belong to no queue."""
    return _in_one_slot(settings.prefix) if any(map(is_cluster, urls_of(settings).values())) else settings.prefix


def _in_one_slot(prefix: str) -> str:
    return prefix if tag_of(prefix) else f"{prefix}{{{HOME}}}:"


def _slot_contradictions(settings: ConnectionSettings) -> Iterator[tuple[str, str]]:
    """On a cluster, one slot has all keys that a step changes at once."""
    if not any(map(is_cluster, urls_of(settings).values())):
        return
    tag, control = tag_of(home_of(settings)), settings.control_url or settings.url
    if not tag_of(settings.prefix) and (not is_cluster(settings.url) or "{" in settings.prefix):
        yield "prefix", NO_TAG
        return
    for key, home in (("restart_key", control), ("maintenance_key", settings.maintenance_url or control)):
        name, has_locks = getattr(settings, key), key == "restart_key" and lock_home_of(settings) == settings.url
        is_there = is_cluster(home) or (has_locks and is_spread(settings))  # locks have the prefix of the restart key
        if name and is_there and tag_of(name) != tag:
            yield key, f"is in another slot of the cluster: begin it with {home_of(settings)}"


def _table_contradictions(settings: ConnectionSettings) -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for key in TABLE_KEYS:
        name = getattr(settings, key)
        if (first := seen.setdefault(name.lower(), key)) != key:
            yield key, f"{name} is also {first}: each table needs its own name"
    schemes = set(map(scheme_of, urls_of(settings).values()))
    if settings.schema and "postgresql" not in schemes:
        yield "schema", "is for PostgreSQL: another database is named in the url, and SQLite has one for each file"


def _failed_contradictions(settings: ConnectionSettings) -> Iterator[tuple[str, str]]:
    if settings.failed == "null" and settings.failed_url:
        yield "failed_url", "contradicts failed = null, which keeps nothing anywhere"
    elif settings.failed not in ("", "null", kind_of(settings.failed_url or settings.url)):
        remedy = "contradicts failed_url" if settings.failed_url else "is not where the queue is: set failed_url"
        yield "failed", f"{settings.failed} {remedy}"


def _key_contradictions(settings: ConnectionSettings) -> Iterator[tuple[str, str]]:
    needed = KEY_BYTES[settings.cipher]
    for key, several in (("app_key", settings.app_keys[:1]), ("previous_keys", settings.previous_keys)):
        for wrong in [one for one in several if len(one) != needed]:
            yield key, f"{_bytes(wrong)}, and {settings.cipher} takes {needed}: copy it from Laravel's .env, base64:..."
    if settings.previous_keys and not settings.app_key:
        yield "previous_keys", "needs app_key, the key that is in use now"


def _bytes(key: bytes) -> str:
    return f"a key has {len(key)} byte{'s' * (len(key) != 1)}"
