"""Laravel's limits as middleware of a job: PHP and Python count in the same counters and take the same locks.

Source: Queue/Middleware/WithoutOverlapping.php, RateLimited.php, RateLimitedWithRedis.php, ThrottlesExceptions.php,
ThrottlesExceptionsWithRedis.php (8.83 to 13.x).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator
from html.entities import codepoint2name
from string import Formatter
from typing import TYPE_CHECKING, Any

from queuepool.config.values import LONGEST
from queuepool.errors import BadArguments, StoreDenied, StoreDown, StoreError
from queuepool.jobs.current_job import Current
from queuepool.jobs.job_options import Classes, Retry, Seconds, classes_of, delay_of
from queuepool.jobs.laravel_cache import laravel_cache
from queuepool.jobs.registry import REGISTRY
from queuepool.payload.envelope import OBJECT_JOB
from queuepool.payload.xxh3 import hexdigest

if TYPE_CHECKING:
    from queuepool.stores.laravel_cache import LaravelCache, Uses

#: seconds that the lock of a job without a timeout lasts: Laravel's lasts for ever, also if its worker is killed
_DAY = 86400.0
#: seconds after its timeout for which the lock of a job lasts: it may take so long to end
_END = 300.0
#: seconds that Laravel adds to the end of a window
_MARGIN = 3.0
#: seconds for which a job waits if the cache does not answer
_AWAY = 5.0
#: most uses: a counter without a limit
_UNLIMITED = 2**31
#: most characters of a value in a key
_LONGEST = 150
#: most characters of a key in a database, with the prefix of the cache, and what a counter's timer has behind it
_COLUMN, _TIMER = 255, ":timer"
#: whole numbers up to this are written as such by PHP if they are floats
_WHOLE = 1e15
_log = logging.getLogger("queuepool")


class LaravelLimit:
    """A limit as middleware: it enters it before the handler, and puts the job off if it may not.

    Its ``key`` is what it had before the handler, which may change the arguments.
    """

    #: in braces, the arguments by which it is divided
    by: str

    @property
    def takes(self) -> frozenset[str]:
        """The job's arguments that it needs."""
        fields = (name for _, name, _, _ in Formatter().parse(self.by) if name is not None)
        return frozenset(re.split(r"[.\[]", name, maxsplit=1)[0] for name in fields)

    def __call__(self, job: Current) -> Iterator[None]:
        """Around a plain function."""
        key = self.key_of(job)
        if not self._may_begin(job, key):
            return
        try:
            yield
        except BaseException as error:
            self.leave(job, key, error)
            raise
        self.leave(job, key, None)

    async def in_async(self, job: Current) -> AsyncIterator[None]:
        """Around a coroutine: the event loop goes on while the cache is asked."""
        key = self.key_of(job)
        if not await self._may_begin_beside(job, key):
            return
        try:
            yield
        except BaseException as error:
            await asyncio.to_thread(self.leave, job, key, error)
            raise
        await asyncio.to_thread(self.leave, job, key, None)

    async def _may_begin_beside(self, job: Current, key: str) -> bool:
        """As ``_may_begin``, in a thread: it cannot be cancelled, so a job that is leaves what it has entered."""
        entering = asyncio.ensure_future(asyncio.to_thread(self._may_begin, job, key))
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError as cancelled:
            await asyncio.wait([entering])
            if entering.exception() is None and entering.result():
                await asyncio.to_thread(self.leave, job, key, cancelled)
            raise

    def _may_begin(self, job: Current, key: str) -> bool:
        """Enter; ``False`` if the job is put off, or skipped. While the cache is away, it is put off."""
        cache = laravel_cache()
        if (length := len(f"{cache.prefix}{key}{_TIMER}")) > _COLUMN:
            raise BadArguments(
                job.name, f"{self._words}: its key has {length} characters, a cache has room for {_COLUMN}"
            )
        try:
            return self.enter(job, key)
        except StoreDenied:  # which is also a table that is missing: to wait does not mend it
            raise
        except StoreDown as error:
            _log.warning("%s of job %s: %s; it is put off for %gs", type(self).__name__, job.name, error, _AWAY)
            job.postpone(_AWAY)
            return False

    @property
    def _words(self) -> str:
        return f"{type(self).__name__}(by={self.by!r})"

    def enter(self, job: Current, key: str) -> bool:
        """Whether the job may begin; if not, it is put off, or skipped. Raises ``StoreError``."""
        raise NotImplementedError

    def leave(self, job: Current, key: str, error: BaseException | None) -> None:
        """The handler has returned, or raised this."""

    def key_of(self, job: Current) -> str:
        """The key in Laravel's cache. Raises ``BadArguments``."""
        raise NotImplementedError

    def value_of(self, job: Current) -> str:
        """By what it is divided, for this job. Raises ``BadArguments`` for what no key can hold."""
        try:
            value = _PHP_FORMAT.vformat(self.by, (), job.arguments)
        except (LookupError, AttributeError, ValueError, TypeError) as error:
            why = error if isinstance(error, _NoKey) else repr(error)
            raise BadArguments(job.name, f"{self._words} cannot be filled in: {why}") from error
        if len(value) > _LONGEST:
            raise BadArguments(
                job.name, f"{self._words}: it has {len(value)} characters, a key has room for {_LONGEST}"
            )
        if not value.isprintable():
            raise BadArguments(job.name, f"{self._words}: it has characters that no key can hold")
        return value


class NoOverlap(LaravelLimit):
    """One attempt at a time of the jobs with this ``by``: Laravel's ``WithoutOverlapping``.

    ``by``: an identity with the job's arguments in braces. ``release_after``: the delay of a job that finds the
    lock held; ``None`` = it is skipped (``dontRelease``). ``expires_after``: when the lock of a worker that has
    died ends, longer than any attempt; by default five minutes after the job's ``timeout``, or a day if it has
    none. ``shared``: the lock is the same for all classes of jobs (``shared()``). ``prefix``: as ``withPrefix``.
    Raises ``ConfigError``, and ``ValueError``.
    """

    def __init__(
        self,
        by: str = "",
        *,
        release_after: Seconds | None = 0.0,
        expires_after: Seconds | None = None,
        shared: bool = False,
        prefix: str = "laravel-queue-overlap:",
    ) -> None:
        self.by = by
        self._delay = None if release_after is None else delay_of("release_after", release_after)
        self._seconds = None if expires_after is None else delay_of("expires_after", expires_after)
        self._shared, self._prefix = shared, prefix
        if self._seconds == 0:
            raise ValueError("expires_after must be above 0: the lock of a worker that died would stay for ever")

    def enter(self, job: Current, key: str) -> bool:
        if self._takes(laravel_cache(), job, key):
            return True
        if self._delay is None:
            job.skip("another one of its kind is running")
        else:
            job.postpone(self._delay)
        return False

    def _takes(self, cache: LaravelCache, job: Current, key: str) -> bool:
        seconds = _lasts(job) if self._seconds is None else self._seconds
        if cache.take(key, _owner(job), seconds):
            return True
        # An earlier attempt of the job was killed, or its host has lost the job: it releases nothing of this one.
        earlier = cache.locks.owners([key]).get(key, "") if job.attempts > 1 else ""
        if not _is_earlier(earlier, job):
            return False
        cache.release(key, earlier)
        return cache.take(key, _owner(job), seconds)

    def leave(self, job: Current, key: str, error: BaseException | None) -> None:
        try:
            laravel_cache().release(key, _owner(job))
        except StoreError as problem:
            _log.warning("the lock %s stays held until it expires: %s", key, problem)

    def key_of(self, job: Current) -> str:
        """The lock's key, as Laravel's ``getLockKey``."""
        value = self.value_of(job)
        return self._prefix + (value if self._shared else f"{class_of(job)}:{value}")


class LaravelRate(LaravelLimit):
    """At most ``most`` attempts ``per`` time: the counter of Laravel's ``RateLimited(name)``.

    ``by``: what ``->by(...)`` is given there, with the job's arguments in braces. ``release_after``: the delay of a job
    beyond the rate; by default until 3 seconds after the end of the window, as in Laravel. ``skips``: such a job is
    skipped (``dontRelease``). ``in_redis``: that of ``RateLimitedWithRedis(name)``, which is in the Redis of the jobs,
    not in the cache. Raises ``ConfigError``, and ``ValueError``.
    """

    def __init__(
        self,
        name: str,
        most: int,
        *,
        per: Seconds = 60.0,
        by: str = "",
        release_after: Seconds | None = None,
        skips: bool = False,
        in_redis: bool = False,
    ) -> None:
        self.by, self.name, self.in_redis = by, name, in_redis
        self._most, self._seconds = checked_count("most", most), checked_window(per)
        #: seconds for which a job beyond the rate waits; ``None``: until the end of the window
        self.delay = None if release_after is None else delay_of("release_after", release_after)
        self.skips = skips
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST:
            raise ValueError(f"a rate needs a name of 1 to {_LONGEST} printable characters, not {name!r:.60}")

    def enter(self, job: Current, key: str) -> bool:
        wait = _uses(self, job).count_use(key, self._most, self._seconds)
        if wait is None:
            return True
        if self.skips:
            job.skip(f"the rate {self.name} is used up")
        else:
            job.postpone(wait + _MARGIN if self.delay is None else self.delay)
        return False

    def key_of(self, job: Current) -> str:
        """The counter's key: a digest, as Laravel's."""
        return hashlib.md5((self.name + self.value_of(job)).encode(), usedforsecurity=False).hexdigest()


class Throttle(LaravelLimit):
    """No attempt for the rest of ``per`` after ``most`` exceptions in it: Laravel's ``ThrottlesExceptions``.

    ``by``: a key of its own, as ``by()`` there, with the job's arguments in braces; ``by_job``: each job alone; else
    the class of the job. ``backoff``: the delay of a job after such an exception; by default its own. ``on``: the
    exceptions that count. ``in_redis``: that of ``ThrottlesExceptionsWithRedis``, in the Redis of the jobs. Raises
    ``ConfigError``, and ``ValueError``.
    """

    def __init__(
        self,
        most: int = 10,
        *,
        per: Seconds = 600.0,
        by: str = "",
        by_job: bool = False,
        backoff: Seconds | None = None,
        on: Classes = Exception,
        prefix: str = "laravel_throttles_exceptions:",
        in_redis: bool = False,
    ) -> None:
        self.by, self._by_job, self._prefix, self.in_redis = by, by_job, prefix, in_redis
        self._most, self._seconds = checked_count("most", most), checked_window(per)
        self._backoff = None if backoff is None else delay_of("backoff", backoff)
        self._on = classes_of("on", on)

    def enter(self, job: Current, key: str) -> bool:
        wait = _uses(self, job).count_use(key, self._most, 0)
        if wait is not None:
            job.postpone(wait + _MARGIN)
        return wait is None

    def leave(self, job: Current, key: str, error: BaseException | None) -> None:
        if error is None:
            self._tell(job, lambda uses: uses.forget_uses(key))
        elif isinstance(error, self._on) and not isinstance(error, Retry):
            self._tell(job, lambda uses: uses.count_use(key, _UNLIMITED, self._seconds))
            if self._backoff is not None:
                job.retry_after = self._backoff

    def _tell(self, job: Current, verb: Callable[[Uses], object]) -> None:
        try:
            verb(_uses(self, job))
        except StoreError as problem:
            _log.warning("the throttle %s is not kept: %s", self._prefix, problem)

    def key_of(self, job: Current) -> str:
        """The counter's key, as Laravel's ``getKey``."""
        if self.by:
            key = self._prefix + self.value_of(job)
            return key if self.in_redis else cleaned(key)
        if self._by_job:
            return self._prefix + job.uuid
        return self._prefix + hexdigest(job.payload.options.display_name or class_of(job))


def _uses(limit: LaravelRate | Throttle, job: Current) -> Uses:
    """Where it counts. Raises ``BadArguments``."""
    cache = laravel_cache()
    if not limit.in_redis:
        return cache
    if cache.durations is None:
        what = f"the rate {limit.name}" if isinstance(limit, LaravelRate) else "its Throttle"
        raise BadArguments(job.name, f"{what} is counted in Redis (in_redis=True), but its jobs are in a database")
    return cache.durations


def class_of(job: Current) -> str:
    """How Laravel names the class in its keys: by its digest if it has a ``displayName()``, which the payload shows."""
    if job.payload.options.job != OBJECT_JOB:
        return job.name
    data, shown = job.payload.data, job.payload.options.display_name
    name = str(data.get("commandName", job.name)) if isinstance(data, dict) else job.name
    return hexdigest(shown) if shown and shown != name else name


def cleaned(key: str) -> str:
    """Laravel's key of a rate limiter: accents and special characters become letters.

    Source: Cache/RateLimiter.php, cleanRateLimiterKey (13.x).
    """
    named = "".join("&#039;" if one == "'" else _entity(one) for one in key)
    return re.sub(r"&([a-z])[a-z]+;", r"\1", named, flags=re.IGNORECASE)


def _entity(letter: str) -> str:
    name = codepoint2name.get(ord(letter))
    return f"&{name};" if name else letter


def checked_count(key: str, value: object) -> int:
    """A whole number from 1. Raises ``ValueError``."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _UNLIMITED:
        raise ValueError(f"{key} cannot be {value!r}: it is a whole number from 1")
    return value


def checked_window(per: Seconds) -> int:
    """Whole seconds, as Laravel counts. Raises ``ValueError``, and ``ConfigError``."""
    seconds = math.ceil(delay_of("per", per))
    if seconds < 1:
        raise ValueError(f"per cannot be {per!r}: a window lasts a second at least")
    return seconds


class _NoKey(ValueError):
    """A value that PHP would write in another way, or not at all."""


class _PhpFormat(Formatter):
    """Writes values in keys as PHP does."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec:
            raise _NoKey(f"a format, {format_spec!r}: PHP has none")
        if (text := php_text(value)) is None:
            raise _NoKey(f"{value!r:.60} is neither a text nor a whole number")
        return text


def php_text(value: object) -> str | None:
    """The value as PHP writes it in a text; ``None`` if it is neither a text nor a whole number."""
    if isinstance(value, bool):
        return "1" if value else ""
    if type(value) is int or (isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE):
        return str(int(value))
    return str.__str__(value) if isinstance(value, str) else None


_PHP_FORMAT = _PhpFormat()


def _lasts(job: Current) -> float:
    """The seconds for which the lock of an attempt lasts."""
    asked, handler = job.payload.options.timeout, REGISTRY.known(job.name)
    timeout = handler.options.timeout if asked is None and handler else asked
    return min(timeout, LONGEST) + _END if timeout else _DAY


def _owner(job: Current) -> str:
    """This attempt, as the owner of locks."""
    return f"{job.uuid or job.id}:{job.attempts}"


def _is_earlier(owner: str, job: Current) -> bool:
    """Whether it is an earlier attempt of this job."""
    identity, _, number = owner.rpartition(":")
    return identity == (job.uuid or job.id) and number.isdecimal() and int(number) < job.attempts
