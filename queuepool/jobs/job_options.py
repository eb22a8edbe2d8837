"""A job's options, checked where the job is defined, and ``Retry``; in a worker a check would come too late.

Among them are its schedule, and delays in all the forms that a caller may give.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import count, takewhile
from typing import Any, Literal, TypedDict

from queuepool.config import values
from queuepool.config.words import OPTIONS
from queuepool.errors import AttemptLost, ConfigError, JobError, QueuepoolError
from queuepool.jobs.definition import around_of, check_job_name, predicate_of
from queuepool.jobs.limits import Limit, checked_limits
from queuepool.payload.options import checked_tags
from queuepool.settlement.verdict import Backoff

#: upper limit of seconds and of counts
_MAX = 2**31
Seconds = float | str | timedelta
#: one delay, one for each try, or ``exponential(1, 300)``
Delays = Seconds | Sequence[Seconds] | Backoff
#: seconds, ``"90"`` or ``"5m"`` (s, m, h), a ``timedelta``, or a ``datetime``; a naive one is local time
Delay = float | str | timedelta | datetime
#: seconds that a unique lock lasts, unless said otherwise
DAY = 86400.0
#: seconds in the past that no delay can mean
_NEVER = 1e10
#: a database column of 255 characters holds it, with a prefix
_LONGEST_NAME = 150
_MAY_BE_EMPTY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A job's own options; ``None`` leaves one to the pool. Times in seconds."""

    queue: str | None = None
    tries: int | None = None
    timeout: float | None = None
    backoff: tuple[float, ...] | None = None
    #: whether the worker shortens each of these delays at random; payloads do not show it
    jitter: bool = False
    max_exceptions: int | None = None
    fail_on_timeout: bool | None = None
    #: seconds after which the handler gets ``SoftTimeout``
    soft_timeout: float | None = None
    #: the exceptions after which it may be retried, except those in ``fail_on``
    retry_on: tuple[type[BaseException], ...] = (BaseException,)
    #: how long it waits after some of them (the nearest class of an exception counts); ``None`` = its backoff
    delays: tuple[tuple[type[BaseException], Backoff | None], ...] = ()
    fail_on: tuple[type[BaseException], ...] = ()
    #: seconds after it is due within which it must begin, else it is dropped; ``None`` = no limit
    expires: float | None = None
    #: whether a dispatch encrypts the data
    encrypted: bool = False
    #: the identity, with the arguments in braces, whose lock a dispatch takes; if it is held, nothing is pushed
    unique: str | None = None
    #: seconds after which that lock ends by itself
    unique_for: float = 86400.0
    #: seconds for which the job's state is kept after its end; 0 = the pool decides
    track: float = 0.0
    #: what runs around its handler, the first outermost; and whether it is left out, from its arguments
    around: tuple[Callable[..., Any], ...] = ()
    skip_if: Callable[..., object] | None = None
    #: whether the job is skipped, as if done, once its batch in Laravel was cancelled
    skip_if_cancelled: bool = False
    #: the identity under which Laravel has locked the job, from its arguments by name
    unique_id: Callable[..., object] | None = None
    #: when Laravel's lock is released: at the ``end`` of the job, or at its ``start`` (ShouldBeUniqueUntilProcessing)
    unique_until: str = "end"
    #: words that its payloads carry, like Horizon's
    tags: tuple[str, ...] = ()
    #: when a pool pushes it by itself: a cron expression or an interval
    schedule: str | None = None
    #: its former names, under which jobs may still be queued
    aliases: tuple[str, ...] = ()
    #: how many may run at a time, or start in a while, over all hosts
    limits: tuple[Limit, ...] = ()

    @property
    def has_middleware(self) -> bool:
        """Whether anything runs around its handler, or may skip it."""
        return bool(self.around) or self.skip_if is not None

    @property
    def is_unique(self) -> bool:
        """Whether they say more about Laravel's lock than a payload does."""
        return self.unique_id is not None or self.unique_until == "start"


class JobOptions(TypedDict, total=False):
    """``Options`` as written with ``@job`` or a ``Job`` class; ``backoff`` may be one delay."""

    queue: str
    tries: int | None
    timeout: Seconds | None
    backoff: Delays | None
    max_exceptions: int | None
    fail_on_timeout: bool | None
    soft_timeout: Seconds | None
    retry_on: Classes | Mapping[type[BaseException], Delays | None] | None
    fail_on: Classes | None
    expires: Seconds | None
    encrypted: bool
    unique: str | None
    unique_for: Seconds
    track: Seconds
    around: Sequence[Callable[[Any], Iterator[None] | AsyncIterator[None]]]
    skip_if: Callable[..., object] | None
    skip_if_cancelled: bool
    unique_id: Callable[..., object] | None
    unique_until: Literal["start", "end"]
    tags: Sequence[str]
    schedule: str | None
    aliases: Sequence[str]
    limits: Sequence[Limit]


def options_of(options: JobOptions) -> Options:
    """Check and parse options. Raises ``ConfigError`` for an unknown option or a value that no worker accepts."""
    known = [*JobOptions.__annotations__]
    for key in options.keys() - known:
        raise ConfigError("@job", f"there is no option {key!r}{_hint(key, known)}")
    _check_unique(options)
    unique_for = _seconds("unique_for", options.get("unique_for", Options().unique_for))
    backoff = _backoff("backoff", options.get("backoff"))
    for key in ("tries", "max_exceptions"):
        _check_number(key, options.get(key), int)
    timeout, track = (_seconds(key, options.get(key, getattr(Options(), key))) for key in ("timeout", "track"))
    named = options.get("queue")
    queue = "default" if named is None else queue_name(named)
    given: dict[str, Any] = {**options, "queue": queue, "timeout": timeout, "track": track, "unique_for": unique_for}
    given["expires"], given["limits"] = _expires(options), _limits(options.get("limits", ()))
    given["tags"], given["aliases"] = _tags(options.get("tags", ())), aliases_of(options.get("aliases", ()))
    given |= _exceptions(options) | {"soft_timeout": _soft_timeout(options.get("soft_timeout"), timeout)}
    given |= _middleware(options)
    given |= {"backoff": backoff and backoff.delays, "jitter": bool(backoff and backoff.jitter)}
    return Options(**given)


def _expires(options: JobOptions) -> float | None:
    expires = _seconds("expires", options.get("expires"))
    if expires == 0:
        raise ConfigError("@job", "expires must be above 0: a job that may never begin need not be pushed")
    if expires and options.get("schedule") is not None:
        how = "its time is set by the schedule; use [schedule] late to limit how late a job may begin"
        raise ConfigError("@job", f"expires cannot be combined with schedule: {how}")
    return expires


def _tags(value: object) -> tuple[str, ...]:
    try:
        return checked_tags(value)
    except ValueError as error:
        raise ConfigError("@job", str(error)) from None


def _limits(value: object) -> tuple[Limit, ...]:
    try:
        return checked_limits(value)
    except ValueError as error:
        raise ConfigError("@job", str(error)) from None


def _exceptions(options: JobOptions) -> dict[str, object]:
    """``retry_on`` with its delays, and ``fail_on``, or their defaults."""
    retry_on, fail_on = options.get("retry_on"), options.get("fail_on")
    retried = Options().retry_on if retry_on is None else classes_of("retry_on", retry_on)
    failed = Options().fail_on if fail_on is None else classes_of("fail_on", fail_on)
    if retry_on is not None:
        check_both(retried, failed)
    return {"retry_on": retried, "fail_on": failed, "delays": _delays(retry_on)}


def _delays(retry_on: object) -> tuple[tuple[type[BaseException], Backoff | None], ...]:
    """The delays of a ``retry_on`` that has some."""
    if not isinstance(retry_on, Mapping):
        return ()
    return tuple((one, _backoff(f"retry_on: the delay of {one.__qualname__}", to)) for one, to in retry_on.items())


def _middleware(options: JobOptions) -> dict[str, object]:
    """``around`` and ``skip_if``."""
    return {"around": around_of(options.get("around", ())), "skip_if": predicate_of(options.get("skip_if"))}


def _backoff(key: str, value: object) -> Backoff | None:
    if value is None or isinstance(value, Backoff):
        return value
    several = (value,) if isinstance(value, (int, float, str, timedelta)) else value
    if not isinstance(several, Sequence):
        raise ConfigError("@job", f"{key} cannot be {value!r}: write a delay, a list, or exponential(1, 300)")
    return Backoff(tuple(delay_of(key, delay) for delay in several)) if several else None


def _soft_timeout(value: object, timeout: float | None) -> float | None:
    soft = _seconds("soft_timeout", value)
    if soft and timeout and soft >= timeout:
        raise ConfigError(
            "@job", f"soft_timeout ({soft:g}) is not below timeout ({timeout:g}): it would never be reached"
        )
    return soft


def _check_unique(options: JobOptions) -> None:
    if not callable(options.get("unique_id", str)):
        raise ConfigError("@job", "unique_id must be a function of the job's arguments that returns the identity")
    if not isinstance(options.get("unique") or "", str):
        raise ConfigError("@job", 'unique must be a string with the arguments in braces, like "{order}"')
    if not options.get("unique_for", 1):
        raise ConfigError("@job", "unique_for must be above 0: a lock that never expires could be held forever")
    if options.get("unique_until", "end") not in ("start", "end"):
        raise ConfigError("@job", f"unique_until cannot be {options['unique_until']!r}: give 'start' or 'end'")


def queue_name(name: str) -> str:
    """Return the name unchanged. Raises ``ConfigError`` if no pool can serve it."""
    if not isinstance(name, str):
        raise ConfigError("@job", f"queue cannot be {name!r}")
    try:
        return values.queue(name)
    except ValueError as error:
        raise ConfigError("@job", f"queue: {error}") from None


def target_of(options: Options, queue: str | None) -> str:
    """The queue to push to: ``queue`` if given, else the job's own, else ``default``. Raises ``ConfigError``."""
    return options.queue or "default" if queue is None else queue_name(queue)


def _hint(key: str, known: Sequence[str]) -> str:
    [close] = [OPTIONS[key]] if key in OPTIONS else get_close_matches(key, known, 1) or [""]
    return f": did you mean {close!r}?" if close else f"; there are: {', '.join(known)}"


def delay_of(key: str, value: object) -> float:
    """Seconds of a delay. Raises ``ConfigError`` if it is not one."""
    seconds = _seconds(key, value)
    if seconds is None:
        raise ConfigError("@job", f"{key} cannot be None")
    return float(seconds)


def _seconds(key: str, value: object) -> float | None:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, str):
        try:
            return values.seconds(value)
        except ValueError as error:
            raise ConfigError("@job", f"{key}: {error}") from None
    _check_number(key, value, int, float)
    return value  # type: ignore[return-value]


def _check_number(key: str, value: object, *kinds: type) -> None:
    # Checked now: a worker would ignore a wrong value in the payload, or quarantine the job.
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < _MAX):  # type: ignore[operator]
        raise ConfigError("@job", f"{key} cannot be {value!r}")


# ``retry_on`` and ``fail_on``: the classes of exceptions that a job names.

#: as written: one class or several
Classes = type[BaseException] | Iterable[type[BaseException]]
_EXAMPLE = "write classes: (TimeoutError, ConnectionError)"


def classes_of(key: str, value: object) -> tuple[type[BaseException], ...]:
    """The classes as ``isinstance`` takes them. Raises ``ConfigError`` for what no handler can raise."""
    several = (value,) if isinstance(value, (type, str)) or not isinstance(value, Iterable) else tuple(value)
    if not several:
        raise ConfigError("@job", f"{key} is empty: name an exception, or leave it out")
    return tuple(_class_of(key, one) for one in several)


def check_both(retry_on: Iterable[type[BaseException]], fail_on: tuple[type[BaseException], ...]) -> None:
    """Raises ``ConfigError`` for a class in ``retry_on`` after which the job would never be retried."""
    for one in retry_on:
        if issubclass(one, JobError):
            raise ConfigError("@job", f"retry_on: {one.__qualname__} is a JobError, which always fails a job")
        if issubclass(one, fail_on):
            [wider] = [other for other in fail_on if issubclass(one, other)][:1]
            which = "is also in fail_on" if one is wider else f"is a {wider.__qualname__}, which is in fail_on"
            raise ConfigError("@job", f"retry_on: {one.__qualname__} {which}, so it would never be retried")


def _class_of(key: str, one: object) -> type[BaseException]:
    if not isinstance(one, type) or not issubclass(one, BaseException):
        raise ConfigError("@job", f"{key} cannot have {one!r}: {_EXAMPLE}")
    if issubclass(one, Retry):
        raise ConfigError("@job", f"{key} cannot have {one.__qualname__}: raising it already asks for another try")
    if issubclass(one, AttemptLost):
        why = "fail_on_timeout and tries decide on a timeout, max_crashes on a worker's death"
        raise ConfigError("@job", f"{key} cannot have {one.__qualname__}, which no handler raises: {why}")
    return one


# The former names of a job: what was queued under them still runs it.


def aliases_of(value: object) -> tuple[str, ...]:
    """The names in ``@job(aliases=...)``. Raises ``ConfigError``."""
    if not isinstance(value, (list, tuple)):
        raise ConfigError("@job", f"aliases cannot be {value!r}: give a list of names, like ['app.old.send']")
    for name in value:
        check_job_name(name)
    return tuple(value)


# ``exponential``: a backoff that doubles, for ``@job`` and ``retry_on``.


def exponential(first: Seconds, most: Seconds, *, jitter: bool = False) -> Backoff:
    """A backoff that doubles from ``first`` up to ``most`` (seconds, ``"5m"`` or a ``timedelta``), and then stays.

    ``jitter``: each delay is shortened at random, by up to half, so that jobs that failed together do not come back
    together. The payload has the full delays, which Laravel's workers use. Raises ``ConfigError``.
    """
    begin, end = (round(delay_of("backoff", delay), 3) for delay in (first, most))  # as workers read them
    if not 0 < begin <= end:
        raise ConfigError("@job", f"backoff: exponential({begin:g}, {end:g}) must begin above 0 and end no lower")
    if not isinstance(jitter, bool):
        raise ConfigError("@job", f"backoff: exponential: jitter cannot be {jitter!r}: give True or False")
    growing = takewhile(lambda delay: delay < end, (begin * 2**step for step in count()))
    return Backoff((*growing, end), jitter)


# ``Retry``: raised by a handler that wants another try, at a time that it chooses.


class Retry(QueuepoolError):
    """Try the job again ``after`` this delay; by default after its backoff.

    It counts like any exception: it uses up a try, and on the last try the job fails with it. ``retry_on`` and
    ``fail_on`` do not apply to it. Write ``raise Retry(after="30s") from error`` to keep the cause. Raises
    ``ValueError`` for an invalid delay.
    """

    def __init__(self, reason: str = "", *, after: Delay | None = None) -> None:
        self.after = None if after is None else seconds_until(after)
        when = "later" if self.after is None else f"in {self.after:g} s"
        super().__init__(reason or f"the handler asked for another try {when}")


def seconds_until(delay: Delay) -> float:
    """Seconds from now, 0.0 for the past. Raises ``ValueError`` for an invalid delay, or one over ten years."""
    if isinstance(delay, str):
        return values.seconds(delay)
    seconds = _seconds_of(delay)
    # Databases limit times: the column of PostgreSQL's table ends in 2038.
    if seconds > values.LONGEST:
        raise ValueError(f"the delay {delay!r} is too long: the maximum is ten years (87600h)")
    return max(seconds, 0.0)


def _seconds_of(delay: object) -> float:
    try:
        if isinstance(delay, timedelta):
            return delay.total_seconds()
        if isinstance(delay, datetime):
            return (delay.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        if isinstance(delay, (int, float)) and not isinstance(delay, bool) and delay > -_NEVER:  # so it is not NaN
            return float(delay)
    except (OverflowError, ValueError):  # the first and last days of the calendar, or an int too large for a float
        pass
    raise ValueError(f"{delay!r} is not a delay: give seconds, '5m', a timedelta or a datetime")


def check_schedule(name: str, rule: object, target: Callable[..., Any]) -> None:
    """Raises ``ConfigError`` for an invalid rule, or a job that cannot be called without arguments."""
    if rule is None:
        return
    from queuepool.config.timetable import rule_of  # imported here: few jobs have one

    if not isinstance(rule, str) or not rule:
        raise ConfigError("@job", f"{name}: schedule cannot be {rule!r}: give a string like '0 3 * * *' or '30s'")
    if len(name) > _LONGEST_NAME:
        raise ConfigError(
            "@job", f"{name[:40]!r}...: a scheduled job's name may have at most {_LONGEST_NAME} characters"
        )
    try:
        rule_of(rule)
    except ValueError as error:
        raise ConfigError("@job", f"{name}: schedule: {error}") from None
    for parameter in inspect.signature(target).parameters.values():
        if parameter.default is parameter.empty and parameter.kind not in _MAY_BE_EMPTY:
            how = "give it a default, or set data in a [schedule:NAME] section"
            raise ConfigError("@job", f"{name}: a schedule calls it without {parameter.name!r}: {how}")
