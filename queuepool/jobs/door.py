"""The rule for all that is pushed, by whatever call: what no worker serves or no store holds is refused here.

Errors begin with the name of the job, since a dispatch may be one of many.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.jobs.delay import Delay, seconds_until
from queuepool.jobs.job_options import Seconds
from queuepool.jobs.push_options import fields_of
from queuepool.jobs.wire import Wired
from queuepool.payload.ending import Lock
from queuepool.payload.unique_locks import new_lock

#: characters of a key in the table ``cache_locks``. SQLite would hold more, but not what comes after it
_LONGEST_KEY = 255


class Terms(NamedTuple):
    """How a push is made, checked; times in seconds."""

    delay: float
    track: float
    #: as payload fields
    options: Mapping[str, object] | None


def terms_of(
    name: str, queue: str, delay: Delay, track: Seconds = 0, options: Mapping[str, object] | None = None
) -> Terms:
    """The terms of a push of this job, or without a name of bytes.

    Raises ``ValueError`` for a queue that no pool can serve, and for times and options that no worker understands.
    """
    try:
        check_queue(queue)
        is_checked = not options or isinstance(options, Wired)
        return Terms(seconds_until(delay), seconds_until(track), options if is_checked else fields_of(options or {}))
    except ValueError as error:
        raise ValueError(f"{name}: {error}" if name else str(error)) from None


def check_queue(name: object) -> None:
    """Raise ``ValueError`` if no pool can serve a queue of this name."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not a queue name")
    _check_queue(name)


@lru_cache(maxsize=256)  # a program pushes to few queues
def _check_queue(name: str) -> None:
    values.queue(name)


def lock_of(name: str, identity: object, lasts: Seconds, settings: ConnectionSettings, url: str = "") -> Lock | None:
    """The unique lock that a push takes for ``lasts`` seconds; ``None`` without an identity. Raises ``ValueError``.

    ``url``: where the lock is, if not beside the job.
    """
    if identity is None:
        return None
    try:
        return _lock_of(name, str(identity), seconds_until(lasts), settings, url or settings.url)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _lock_of(name: str, identity: str, seconds: float, settings: ConnectionSettings, url: str) -> Lock | None:
    if not seconds:
        raise ValueError("unique_for must be above 0: such a lock would hold nothing")
    if "\0" in identity or not _is_text(identity):
        raise ValueError(f"the identity of a unique job cannot hold NUL or a lone surrogate, as {identity[:40]!r} does")
    lock = new_lock(name, identity, seconds)
    if lock and kind_of(url) == "sql":
        _check_length(lock.name, settings)
    return lock


def _check_length(name: str, settings: ConnectionSettings) -> None:
    from queuepool.stores.control import lock_prefix_of  # imported here: few jobs are unique

    if (length := len(lock_prefix_of(settings, "sql") + name)) > _LONGEST_KEY:
        raise ValueError(
            f"its unique lock has {length} characters, at most {_LONGEST_KEY} fit into a database: {name[:60]!r}...; "
            "give a digest of what makes it unique"
        )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
