"""What a job must be like to be found: parsed once, then asked of each job."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

from queuepool.config.values import seconds, shown
from queuepool.payload.php_values import PhpEnum, PhpObject

#: most characters of a text to look for
LONGEST = 200
#: characters that no writer of JSON or of PHP's serialization escapes
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
#: Python's words for values that PHP writes otherwise; a text that ends in ``*`` may be the beginning of one
_WORDS = "true", "false", "null", "nan", "inf"
#: those, and numbers with a fraction or an exponent, which JSON may write otherwise than Python does
_IN_OTHER_WORDS = re.compile(rf"-?({'|'.join(_WORDS)}|\d+[.eE].*)", re.IGNORECASE)
#: the id of a payload that has none
_DIGEST = re.compile(r"[0-9a-f]{32}")
#: an encrypted payload has one of these: our own mark, and how Laravel's begins, in base64: {"iv"
_OURS, _LARAVELS = b"qp_encrypted", b"eyJpdiI6"


class Candidate(Protocol):
    """What a filter asks of a job."""

    @property
    def raw(self) -> bytes: ...
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Any: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def error(self) -> str: ...
    @property
    def since(self) -> float | None: ...


@dataclass(frozen=True)
class Word:
    """A text to be equal to; with ``*`` at its end, a text to begin with."""

    text: str

    def fits(self, found: str) -> bool:
        """Whether a text is or begins like this."""
        return found.startswith(self.text[:-1]) if self.text.endswith("*") else found == self.text


@dataclass(frozen=True)
class Condition:
    """That an argument, or something in it, has a value: ``order.customer=4711``."""

    path: str
    word: Word

    @classmethod
    def parsed(cls, raw: str) -> Condition:
        """Raises ``ValueError``."""
        path, equals, value = short(raw).partition("=")
        if not equals:
            raise ValueError(f"{shown(raw)} has no =: write PATH=VALUE, as in customer=4711")
        return cls(checked_path(path.strip()), Word(value.strip()))

    def holds(self, arguments: Any) -> bool:
        """Whether one of the values at the path fits."""
        return any(self.word.fits(text) for value in values_at(arguments, self.path) for text in _texts(value))

    def may_hold(self, raw: bytes) -> bool:
        """Whether it may hold for a payload that is not encrypted: a quick look at its bytes."""
        return self._written is None or self._written.search(raw) is not None

    @cached_property
    def _written(self) -> re.Pattern[bytes] | None:
        """The argument's name, and behind it the value, or what may lead to it: a list, or another kind of PHP's.

        ``None`` if JSON or PHP's serialization may write them in other words.
        """
        name, text = self.path.rpartition(".")[2], self.word.text
        value, is_start = text.removesuffix("*"), text.endswith("*")
        are_plain = _PLAIN.fullmatch(name) and _PLAIN.fullmatch(value) and not name.isdecimal()
        if not are_plain or _may_be_in_other_words(text) or (is_start and value[0].isdecimal()):
            return None
        end = "" if is_start else r"(?!\w)"
        return re.compile(rf"{name}\W{{1,16}}(?:(?:i:|s:\d+:\W{{1,4}})?{value}{end}|\[|[^\Wis][:;])".encode())


@dataclass(frozen=True, kw_only=True)
class Filter:
    """All of these must hold; what is empty or ``None`` always does. Times in Unix seconds."""

    id: str = ""
    name: str = ""
    where: tuple[Condition, ...] = ()
    tag: str = ""
    #: part of the first line of a failed job's error
    error: str = ""
    #: when it was pushed or, of a failed job, when it failed
    since: float | None = None
    until: float | None = None
    #: anywhere in its payload or error
    search: str = ""

    def matches(self, job: Candidate) -> bool:
        """Whether the job fits."""
        return (
            self.may_match(job.raw)
            and (not self.id or job.id == self.id)
            and (not self.name or Word(self.name).fits(job.name))
            and (not self.tag or any(Word(self.tag).fits(tag) for tag in job.tags))
            and (not self.error or self.error in job.error)
            and self._is_in_time(job)
            and (not self.search or self._has_text(job))
            and all(condition.holds(job.arguments) for condition in self.where)
        )

    @property
    def is_empty(self) -> bool:
        """Whether every job fits."""
        return self == Filter()

    def may_match(self, raw: bytes) -> bool:
        """A quick look at the bytes, since nearly all jobs of a long queue do not fit."""
        for needle in self._needles:
            if needle not in raw:
                return may_be_encrypted(raw)
        return all(one.may_hold(raw) for one in self.where) or may_be_encrypted(raw)

    @cached_property
    def _needles(self) -> tuple[bytes, ...]:
        """The longest plain part of each text that every payload which fits must have in its bytes."""
        values = [one.word.text for one in self.where if not _may_be_in_other_words(one.word.text)]
        job_id = "" if _DIGEST.fullmatch(self.id) else self.id  # which is not in the bytes
        parts = (_PLAIN.findall(text.removesuffix("*")) for text in (job_id, self.name, self.tag, *values))
        return tuple(max(found, key=len).encode() for found in parts if found)

    @cached_property
    def _writings(self) -> tuple[bytes, ...]:
        """The text as UTF-8 and as JSON may escape it, with and without PHP's backslash before a slash."""
        written = [json.dumps(self.search, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
        texts = {one for text in (self.search, *written) for one in (text, text.replace("/", "\\/"))}
        return tuple(text.encode("utf-8", "surrogateescape") for text in texts)

    def _has_text(self, job: Candidate) -> bool:
        return any(text in job.raw for text in self._writings) or self.search in job.error

    def _is_in_time(self, job: Candidate) -> bool:
        if self.since is None and self.until is None:
            return True
        at = job.since
        return at is not None and (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


def _may_be_in_other_words(text: str) -> bool:
    """Whether JSON or PHP may write a value that fits this text in other words."""
    start = text.removesuffix("*")
    is_start_of_one = start != text and any(word.startswith(start.lower().removeprefix("-")) for word in _WORDS)
    return is_start_of_one or _IN_OTHER_WORDS.fullmatch(start) is not None


def may_be_encrypted(raw: bytes) -> bool:
    """Whether the payload with these bytes may be encrypted."""
    return _OURS in raw or _LARAVELS in raw


def values_at(value: Any, path: str) -> Iterator[Any]:
    """What is at this path: keys and properties by their names, of a list an item by its number, or of all of them."""
    if isinstance(value, PhpObject) and path:
        value = value.properties
    if not path:
        yield value
    elif isinstance(value, list):
        yield from _values_in_list(value, path)
    elif isinstance(value, Mapping):
        yield from _values_in_mapping(value, path)


def _values_in_list(items: list[Any], path: str) -> Iterator[Any]:
    key, _, rest = path.partition(".")
    if not key.isdecimal():
        for item in items:
            if not isinstance(item, list):  # they may be nested a thousand times
                yield from values_at(item, path)
    elif len(key) < 10 and int(key) < len(items):  # Python refuses to read a number of thousands of digits
        yield from values_at(items[int(key)], rest)


def _values_in_mapping(fields: Mapping[Any, Any], path: str) -> Iterator[Any]:
    key, _, rest = path.partition(".")
    if rest and path in fields:  # a key may contain a dot
        yield fields[path]
    number = int(key) if key.isdecimal() else key  # a key of a PHP array
    for name in dict.fromkeys((key, number)):
        if name in fields:
            yield from values_at(fields[name], rest)


def text_of(value: Any) -> str | None:
    """A single value as a text: as JSON writes it, a text without quotes; ``None`` for anything else."""
    match value:
        case str():
            return value
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | float():
            return str(value)
        case PhpEnum():
            return value.case
    return None


def _texts(value: Any) -> Iterator[str]:
    """The value as a text; of a list all of its items."""
    for one in value if isinstance(value, list) else [value]:
        if (text := text_of(one)) is not None:
            yield text


def short(raw: str) -> str:
    """Raises ``ValueError`` for a text that is too long to be looked for."""
    if len(raw) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    return raw


def checked_path(raw: str) -> str:
    """Raises ``ValueError`` if it is not a path to an argument."""
    if not all(short(raw).split(".")):
        raise ValueError(
            f"{shown(raw)} is not a path to an argument: write names with dots between them, as order.customer"
        )
    return raw


def moment(raw: str, now: float) -> float:
    """Unix seconds from a time (ISO 8601, UTC unless it says otherwise) or from how long ago it was (``2h``).

    Raises ``ValueError``.
    """
    try:
        return now - seconds(raw)
    except ValueError:
        pass  # it may be a time
    try:
        at = datetime.fromisoformat(raw)
        found = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{shown(raw)} is not a time: write how long ago (2h), or 2026-11-26T02:00") from None
    if not math.isfinite(found):
        raise ValueError(f"{shown(raw)} is not a time")
    return found
