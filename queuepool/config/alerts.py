"""The section ``[alerts]``: there is one for all pools, and without it there are no alerts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from queuepool.config import values
from queuepool.config.entries import Entry, Parsed, Part, Problem, defaults_of
from queuepool.config.setting import setting

KIND = "alerts"
#: most characters of a program or a URL: a notice that holds both fits into a pipe
_LONGEST = 4096
#: half of the time for which a store keeps the last notice of a pool
_LONGEST_SILENCE = 1800.0


class Webhook(NamedTuple):
    """A URL that notices are posted to, which may hold a secret; empty = none.

    ``form``: that of the body, ``json`` or ``slack``.
    """

    url: str = ""
    form: str = "json"


_NOWHERE = Webhook()


def waits(raw: str) -> tuple[tuple[str, float], ...]:
    """One time for all queues, or ``queue:time`` for some, separated by commas."""
    found = [_wait(part.strip(" \t")) for part in raw.split(",")]
    names = [name for name, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{values.shown(twice[0])} is given twice" if twice[0] else "has two times for all queues")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """The value from which each alert is raised. Times in seconds, 0 = never."""

    #: How long the next job of a queue may be ready and not begin; QUEUE:TIME for single queues: 60, imports:1h,
    #: mail:0.
    # by queue; of the queue "", for all that have no value of their own
    wait: tuple[tuple[str, float], ...] = setting((("", 60.0),), waits, written="60")
    #: How long a job may be due and still be among the delayed ones: no pool makes it ready.
    overdue: float = setting(30.0, values.seconds)
    #: How long a job may be next in a queue that no pool on the store serves: a producer may have misspelt the queue's
    #: name. Checked once a minute in the whole store.
    unserved: float = setting(300.0, values.seconds, written="5m")
    #: Which share of the last five minutes' attempts may have failed for good, counted from 20 attempts on.
    failures: float = setting(0.2, share, written="20%")  # from 0 to 1
    #: How long a job may run.
    running: float = setting(3600.0, values.seconds, written="1h")
    #: How many failed jobs may be kept.
    failed: int = setting(1000, values.count)
    #: How many payloads in a queue's quarantine raise an alert.
    quarantine: int = setting(1, values.count)
    #: How many workers that crash within five minutes raise an alert.
    crashes: int = setting(5, values.count)
    #: How many flows that fail within five minutes, or end at their deadline, raise an alert.
    failed_flows: int = setting(1, values.count)
    #: How long none of the jobs of a flow that is under way may begin or end. Checked once a minute.
    stalled: float = setting(21600.0, values.seconds, written="6h")
    #: How long a job may wait for a place of a limit.
    parked: float = setting(3600.0, values.seconds, written="1h")
    #: How long a place of a limit may stay free while jobs wait for it, and none is given it.
    unused: float = setting(60.0, values.seconds, written="1m")
    #: How long another pool on the store may be silent unless it was stopped; at most 30m.
    lost: float = setting(30.0, silence)
    #: How long the store may be away.
    store: float = setting(60.0, values.seconds)
    #: How long the store may be full: it takes no new jobs.
    store_full: float = setting(60.0, values.seconds)
    #: How long the newest code may fail to become ready, whether or not old workers are left.
    boot: float = setting(30.0, values.seconds)
    #: How long a queue or the pool may be paused, or maintenance mode be on: it may have been forgotten.
    paused: float = setting(86400.0, values.seconds, written="1d")
    #: After how long the notice of an alert that is still raised is sent again.
    repeat: float = setting(3600.0, values.some_seconds, written="1h")
    #: Program that gets each notice as JSON on its standard input, with its arguments: /usr/local/bin/page --team ops.
    #: It has 10 seconds.
    program: tuple[str, ...] = setting((), program, key="exec")
    #: URL that each notice is posted to as JSON; slack:https://hooks.slack.com/... posts a text, as Slack and others
    #: take it.
    webhook: Webhook = setting(_NOWHERE, webhook, written="", is_secret=True)

    def wait_of(self, queue: str) -> float:
        """The limit of this queue's wait; 0.0 = none."""
        limits = dict(self.wait)
        return limits.get(queue, limits.get("", 0.0))


def section(headers: Sequence[Entry], stated: Sequence[Parsed], forced: Sequence[Parsed]) -> Part | None:
    """The section, if the configuration has it or the environment sets one of its keys."""
    is_there = any(header.section == KIND for header in headers)
    is_forced = any(one.entry.section == KIND for one in forced)
    return defaults_of(KIND, stated, forced) if is_there or is_forced else None


def alerts(part: Part, queues: Collection[str]) -> AlertSettings:
    """The settings for a pool of these queues."""
    found = AlertSettings(**part.fields())
    return replace(found, wait=tuple(one for one in found.wait if not one[0] or one[0] in queues))


def problems_of(part: Part, queues: Collection[str]) -> Iterator[Problem]:
    """What is wrong beyond single values; ``queues`` are those of all pools."""
    for name, _ in part.fields().get("wait", ()):
        if name and name not in queues:
            served = ", ".join(sorted(queues))
            yield Problem(part.place_of("wait"), f"no pool serves queue {values.shown(name)}, only: {served}")
