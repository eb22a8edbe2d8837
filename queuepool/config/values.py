"""Parsers of a configuration's values: each takes the raw text, and raises ``ValueError`` that says what is valid."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from keyword import iskeyword
from pathlib import Path

from queuepool.config.urls import LONGEST_SOCKET_PATH

Parser = Callable[[str], object]

INLINE_COMMENT = re.compile(r"(?:^|[ \t])[;#]")
NO_INLINE_COMMENTS = "inline comments are not supported: put the comment on a line of its own"
MAX_WORKERS = 1024
MAX_CONCURRENCY = 1000
MAX_AHEAD = 64
#: the queue of the jobs that are on their way to another connection: no pool serves it
ON_THEIR_WAY = "queuepool:moving"
#: how the queues end that hold jobs on their way to another slot of a cluster
RELAY = ":queuepool:relay"
#: the queue of the rows whose jobs are parked; ``queuepool_parked`` has their own
PARKED = "queuepool:parked"
#: as many replicas as there are
ALL = "all"
LONGEST = 87600 * 3600.0  # ten years; Python's timers end at 292
BASELINE_MB = 16  # resident, of a worker that has imported nothing yet, rounded down
MAX_MB = 1024 * 1024
SECONDS_IN = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
MB_IN = {"": 1, "M": 1, "MB": 1, "G": 1024, "GB": 1024}
BOOLEANS = dict.fromkeys(("yes", "true", "on", "1"), True) | dict.fromkeys(("no", "false", "off", "0"), False)
_PHP_CLASS = re.compile(r"(?:[^\W\d]\w*\\)*[^\W\d]\w*")
DECIMAL = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A worker's limit in resident MB: in total, or above its size once its modules are imported; 0 = no limit."""

    megabytes: float
    is_above_boot: bool = False

    def __str__(self) -> str:
        return f"{'+' * self.is_above_boot}{self.megabytes:.10g}"

    def total(self, booted: float) -> float:
        """The limit in MB for a worker that has ``booted`` MB after its boot; 0 = no limit."""
        return self.megabytes + booted if self.megabytes and self.is_above_boot else self.megabytes

    def is_too_small(self, booted: float) -> bool:
        """Whether a worker that has ``booted`` MB after its boot reaches the limit before its first job."""
        return 0 < self.total(booted) <= booted


@dataclass(frozen=True, slots=True)
class MemoryReserve:
    """Memory that stays free: in MB, or a share of all in percent."""

    amount: float
    is_share: bool = False

    def __str__(self) -> str:
        return f"{self.amount:.10g}{'%' * self.is_share}"

    def megabytes(self, total: float) -> float:
        """In MB, where there are ``total`` MB."""
        return total * self.amount / 100 if self.is_share else self.amount


@dataclass(frozen=True, slots=True)
class Address:
    """``path`` of a Unix socket, or else ``host`` and ``port``."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_private(self) -> bool:
        """Whether only this host can connect."""
        return bool(self.path) or ip_address(self.host).is_loopback

    @property
    def is_v6(self) -> bool:
        return ":" in self.host


def count(raw: str) -> int:
    """A whole number from 0 to 999999999."""
    # int() also takes other scripts' digits, underscores and signs.
    if not re.fullmatch(r"[0-9]{1,9}", raw):
        raise ValueError(f"{shown(raw)} is not a whole number from 0 to 999999999")
    return int(raw)


def replicas(raw: str) -> str:
    """A number of replicas, or ``all``, as many as there are; empty for none."""
    if raw != ALL and not re.fullmatch(r"[0-9]{1,2}", raw):
        raise ValueError(f"{shown(raw)} is neither a number from 0 to 99 nor `{ALL}`")
    return raw.lstrip("0")


def workers(raw: str) -> int:
    """A number of workers; ``auto`` is one per CPU."""
    if raw == "auto":
        return min(os.cpu_count() or 1, MAX_WORKERS)
    if not re.fullmatch(r"[0-9]{1,9}", raw) or not 1 <= int(raw) <= MAX_WORKERS:
        raise ValueError(f"{shown(raw)} is neither a number from 1 to {MAX_WORKERS} nor `auto` (one per CPU)")
    return int(raw)


def bound(raw: str) -> int:
    """The fewest or the most workers; 0 = as many as ``workers``, for the empty text."""
    if raw and (not re.fullmatch(r"[0-9]{1,9}", raw) or not 1 <= int(raw) <= MAX_WORKERS):
        raise ValueError(f"{shown(raw)} is not a number from 1 to {MAX_WORKERS}")
    return int(raw or 0)


def concurrency(raw: str) -> int:
    """How many jobs a worker runs at once."""
    if not re.fullmatch(r"[0-9]{1,9}", raw) or not 1 <= int(raw) <= MAX_CONCURRENCY:
        raise ValueError(f"{shown(raw)} is not a number from 1 to {MAX_CONCURRENCY}")
    return int(raw)


def ahead(raw: str) -> int:
    """How many jobs a worker reserves at once; 0 = ``auto``."""
    if raw in ("auto", "0"):
        return 0
    if not re.fullmatch(r"[0-9]{1,9}", raw) or int(raw) > MAX_AHEAD:
        raise ValueError(f"{shown(raw)} is neither a number from 1 to {MAX_AHEAD} nor `auto` (by how long jobs take)")
    return int(raw)


def seconds(raw: str) -> float:
    """A time in seconds, written with or without a unit."""
    found = re.fullmatch(DECIMAL + "([smhd]?)", raw)
    if not found:
        raise ValueError(f"{shown(raw)} is not a time: write seconds (60, 0.5), or a unit: 60s, 2m, 1h, 1d")
    value = float(found[1]) * SECONDS_IN[found[2]]
    if value > LONGEST:
        raise ValueError(f"{shown(raw)} is longer than ten years (87600h)")
    return value


def span(raw: str) -> float:
    """As ``seconds``, but days may exceed ten years."""
    found = re.fullmatch(DECIMAL + "d", raw)
    return float(found[1]) * 86400.0 if found else seconds(raw)


def kept(raw: str) -> float:
    """A time in seconds from an hour to 35 days, or 0."""
    if (value := span(raw)) and not 3600.0 <= value <= 35 * 86400.0:
        raise ValueError(f"{shown(raw)} is neither from 1h to 35d nor 0")
    return value


def some_seconds(raw: str) -> float:
    """As ``seconds``, but above 0."""
    if not seconds(raw):
        raise ValueError("must be above 0 seconds")
    return seconds(raw)


def delays(raw: str) -> tuple[float, ...]:
    """A list of times in seconds, separated by commas."""
    return tuple(seconds(part) for part in listed(raw))


def megabytes(raw: str) -> float:
    """A worker's size in MB; 0 = no limit."""
    value = _size(raw)
    if value and not BASELINE_MB <= value <= MAX_MB:
        raise ValueError(f"{shown(raw)} is below any worker's baseline ({BASELINE_MB} MB) or above 1024G; 0 = no limit")
    return value


def memory_limit(raw: str) -> MemoryLimit:
    """As ``megabytes``; after a ``+``, above a worker's size after its boot."""
    if not raw.startswith("+"):
        return MemoryLimit(megabytes(raw))
    value = _size(raw[1:])
    if not 0 < value <= MAX_MB:
        raise ValueError(f"{shown(raw)} is not above +0 and at most +1024G; 0 = no limit")
    return MemoryLimit(value, is_above_boot=True)


def memory_reserve(raw: str) -> MemoryReserve:
    """Memory that stays free, in MB or, with a ``%``, as a share."""
    if not raw.endswith("%"):
        return MemoryReserve(_size(raw))
    share = re.fullmatch(DECIMAL + "%", raw)
    if not share or float(share[1]) >= 100.0:
        raise ValueError(f"{shown(raw)} is not a share of the memory: write one from 0% to 99%")
    return MemoryReserve(float(share[1]), is_share=True)


def _size(raw: str) -> float:
    found = re.fullmatch(DECIMAL + "(M|MB|G|GB|)", raw)
    if not found:
        raise ValueError(f"{shown(raw)} is not a size: write MB (128, 128M, 128MB) or GB (1G, 1GB)")
    return float(found[1]) * MB_IN[found[2]]


def boolean(raw: str) -> bool:
    """``yes``, ``true``, ``on``, ``1`` or their opposites, in any case."""
    if raw.lower() not in BOOLEANS:
        raise ValueError(f"{shown(raw)} is neither yes nor no (also true/false, on/off, 1/0)")
    return BOOLEANS[raw.lower()]


def one_of(*choices: str) -> Callable[[str], str]:
    """The parser of one of these words."""
    return partial(chosen, choices)


def chosen(choices: tuple[str, ...], raw: str) -> str:
    """One of the choices."""
    if raw not in choices:
        raise ValueError(f"{shown(raw)} is not supported; it can be: {', '.join(choices)}")
    return raw


def optional(parse: Callable[[str], str]) -> Callable[[str], str]:
    """The same parser, for a value that may be empty."""
    return partial(unless_empty, parse)


def unless_empty(parse: Callable[[str], str], raw: str) -> str:
    """What the parser returns; empty for the empty text."""
    return raw and parse(raw)


def log_level(raw: str) -> str:
    """The name of a log level, in lower case."""
    return chosen(("debug", "info", "warning", "error", "critical"), raw.lower())


def queues(raw: str) -> tuple[str, ...]:
    """Names of queues, separated by commas, each once."""
    names = listed(raw)
    for name in names:
        if names.count(queue(name)) > 1:
            raise ValueError(f"{shown(name)} is given twice")
    return names


def queue(name: str) -> str:
    """The checked name of a queue."""
    if not re.fullmatch(r"[A-Za-z0-9_.{}:-]{1,200}", name):
        raise ValueError(f"{shown(name)} is not a queue name: 1 to 200 of A-Z a-z 0-9 _ . {{ }} : -")
    if name == ON_THEIR_WAY:
        raise ValueError(f"{shown(name)} holds the jobs that are on their way to another connection")
    if name == PARKED:
        raise ValueError(f"{shown(name)} holds the jobs of a database that wait for places of limits")
    if name.endswith(RELAY):
        raise ValueError(f"{shown(name)} holds the jobs that are on their way to another slot of a cluster")
    if name.endswith((":reserved", ":delayed", ":notify")):
        raise ValueError(f"{shown(name)} is the name of a key of another queue")
    # An empty or second hash tag would spread one queue's keys across several nodes of a cluster.
    if not re.fullmatch(r"[^{}]*(\{[^{}]+\}[^{}]*)?", name):
        raise ValueError(f"{shown(name)}: braces are for one hash tag, {{name}}")
    return name


def table(raw: str) -> str:
    """The name of a table or a schema."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", raw):
        raise ValueError(f"{shown(raw)} is not a name for a table: 1 to 63 of A-Z a-z 0-9 _, and no digit first")
    return raw


def schema(raw: str) -> str:
    """The name of a schema; may be empty."""
    return raw and table(raw)


def modules(raw: str) -> tuple[str, ...]:
    """Names of modules, separated by commas; may be empty."""
    names = listed(raw) if raw else ()
    for name in names:
        if not all(part.isidentifier() and not iskeyword(part) for part in name.split(".")):
            raise ValueError(f"{shown(name)} is not a module's name like app.jobs")
    return names


def php_class(raw: str) -> str:
    """The full name of a PHP class, without a leading backslash."""
    if not _PHP_CLASS.fullmatch(raw):
        raise ValueError(f"{shown(raw)} is not the full name of a PHP class like App\\Queue\\QueuepoolOutcome")
    return raw


def listed(raw: str) -> tuple[str, ...]:
    """What is between commas, without blanks."""
    parts = tuple(part.strip(" \t") for part in raw.split(","))
    if not all(parts):
        raise ValueError("there is nothing between two commas or at an end" if raw else "must not be empty")
    return parts


def section_name(raw: str) -> str:
    """The checked name of a pool or connection: also a directory's name and a word in ``ps``. Raises ``ValueError``."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", raw):
        raise ValueError("a name is up to 64 of A-Z a-z 0-9 _ . - and begins with neither . nor -")
    return raw


def text(raw: str) -> str:
    """Text without quotes or an inline comment; may be empty."""
    if INLINE_COMMENT.search(raw):
        raise ValueError(NO_INLINE_COMMENTS)
    if raw[:1] in ("'", '"'):
        raise ValueError("quotes would be part of the value: leave them out")
    return raw


def some_text(raw: str) -> str:
    """As ``text``, but not empty."""
    if not raw:
        raise ValueError("must not be empty")
    return text(raw)


def path(raw: str) -> Path | None:
    """A path; ``None`` when empty."""
    return Path(text(raw)) if raw else None


def listen(raw: str) -> str:
    """The checked text of an address; may be empty. Raises ``ValueError``."""
    if raw:
        address_of(text(raw))
    return raw


def address_of(raw: str) -> Address:
    """The address that the text means. Raises ``ValueError``."""
    if raw.startswith(_UNIX):
        return Address(path=_socket_path(raw.removeprefix(_UNIX)))
    host, _, port = raw.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise ValueError(f"{shown(raw)} has no port from 1 to 65535: write 127.0.0.1:9465 or unix:/PATH")
    is_bracketed = host.startswith("[") and host.endswith("]")
    try:
        found = ip_address(host[1:-1] if is_bracketed else host)
    except ValueError:
        found = None
    if found is None or (found.version == 6) != is_bracketed:
        raise ValueError(f"{shown(raw)} has no IP address: write 127.0.0.1:9465, [::1]:9465 or unix:/PATH")
    return Address(str(found), int(port))


def _socket_path(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{shown(path)} is not an absolute path of a Unix socket")
    if len(path.encode()) > LONGEST_SOCKET_PATH:
        raise ValueError(
            f"{shown(path)} is longer than the {LONGEST_SOCKET_PATH} bytes that a Unix socket's path may have"
        )
    return path


def job_name(raw: str) -> str:
    """The name of a job; may be empty."""
    if re.search(r"\s", raw):
        raise ValueError(f"{shown(raw)} is not the name of a job like app.jobs.report")
    return text(raw)


def data(raw: str) -> str:
    """One JSON value, unchanged; may be empty."""
    try:
        if raw:
            json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", str(error))
        raise ValueError(
            f'is not JSON ({reason}): an object has the arguments by name, as in {{"kind": "daily"}}'
        ) from error
    return raw


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number in JSON")


def shown(raw: str) -> str:
    """The value as an error repeats it: shortened, and ``this`` for what may be a URL with a password."""
    if "@" in raw or "://" in raw:
        return "this"
    return repr(raw if len(raw) <= 40 else f"{raw[:40]}...")


def hidden(problem: str) -> str:
    """The error without the value that it begins with, which may be a secret from a variable."""
    quote = problem[:1]
    return f"its value{problem[problem.rindex(quote) + 1 :]}" if quote in ("'", '"') else problem
