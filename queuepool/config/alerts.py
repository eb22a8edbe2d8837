"""The section ``[alerts]``: there is one for all pools, and without it there are no alerts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlsplit

from queuepool.config import values
from queuepool.config.alert_settings import AlertSettings, Webhook
from queuepool.config.entries import Entry, Problem
from queuepool.config.parts import Part, Setting, defaults_of

KIND = "alerts"
#: most characters of a program or a URL: a notice with them fits into a pipe
_LONGEST = 4096
#: half of the time for which a store keeps the last notice of a pool
_LONGEST_SILENCE = 1800.0


def waits(raw: str) -> tuple[tuple[str, float], ...]:
    """One time for all queues, or ``queue:time`` for some, separated by commas."""
    found = [_wait(part.strip(" \t")) for part in raw.split(",")]
    names = [name for name, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{values.shown(twice[0])} is there twice" if twice[0] else "has two times for all queues")
    return tuple(found)


def _wait(raw: str) -> tuple[str, float]:
    name, colon, time = raw.rpartition(":")
    return values.queue(name) if colon else "", values.seconds(time)


def share(raw: str) -> float:
    """A percentage, as a share from 0 to 1; also ``0``, which means never in every key."""
    if raw == "0":
        return 0.0
    found = re.fullmatch(values.DECIMAL + "%", raw)
    if not found or float(found[1]) > 100:
        raise ValueError(f"{values.shown(raw)} is not a percentage from 0% to 100%")
    return float(found[1]) / 100


def silence(raw: str) -> float:
    """As ``values.seconds``, at most half an hour: the last notice of a lost pool is forgotten after an hour."""
    found = values.seconds(raw)
    if found > _LONGEST_SILENCE:
        raise ValueError(f"{values.shown(raw)} is longer than half an hour (30m): a lost pool is forgotten after 1h")
    return found


def program(raw: str) -> tuple[str, ...]:
    """An absolute path and its arguments, quoted as in a shell; may be empty."""
    _check_length(raw)
    try:
        words = tuple(shlex.split(raw))
    except ValueError as error:
        raise ValueError(f"is not a command: {str(error).lower()}") from error
    if words and not words[0].startswith("/"):
        raise ValueError(f"{values.shown(words[0])} is not an absolute path, as /usr/local/bin/page is")
    return words


def webhook(raw: str) -> Webhook:
    """A URL of http or https; after ``slack:``, one that takes Slack's form. May be empty. No error repeats it."""
    _check_length(raw)
    url = raw.removeprefix("slack:")
    if raw and not _is_url(url):
        raise ValueError("is not a URL like https://host/path, or slack:https://host/path")
    if "@" in urlsplit(url).netloc:
        raise ValueError("has a login before its host, which is not supported")
    return Webhook(url, "json" if url == raw else "slack")


def _check_length(raw: str) -> None:
    if len(raw) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return has_host and parts.scheme in ("http", "https") and bool(re.fullmatch(r"[!-~]+", url))


ALERT_KEYS: Mapping[str, values.Parser] = MappingProxyType({
    "wait": waits, "overdue": values.seconds, "unserved": values.seconds,
    "failures": share, "running": values.seconds, "failed": values.count,
    "quarantine": values.count, "crashes": values.count, "lost": silence, "store": values.seconds,
    "store_full": values.seconds, "boot": values.seconds, "paused": values.seconds,
    "repeat": values.some_seconds, "exec": program, "webhook": webhook,
})  # fmt: skip
_FIELDS = {"exec": "program"}


def section(headers: Sequence[Entry], stated: Sequence[Setting], forced: Sequence[Setting]) -> Part | None:
    """The section, if the configuration has it or the environment sets one of its keys."""
    is_there = any(header.section == KIND for header in headers)
    is_forced = any(one.entry.section == KIND for one in forced)
    return defaults_of(KIND, ALERT_KEYS, stated, forced) if is_there or is_forced else None


def alerts(part: Part, queues: Collection[str]) -> AlertSettings:
    """The settings for a pool of these queues."""
    found = AlertSettings(**{_FIELDS.get(key, key): value for key, value in part.fields().items()})
    return replace(found, wait=tuple(one for one in found.wait if not one[0] or one[0] in queues))


def problems_of(part: Part, queues: Collection[str]) -> Iterator[Problem]:
    """What is wrong beyond single values; ``queues`` are those of all pools."""
    for name, _ in part.fields().get("wait", ()):
        if name and name not in queues:
            served = ", ".join(sorted(queues))
            yield Problem(part.place_of("wait"), f"no pool serves queue {values.shown(name)}, only: {served}")
