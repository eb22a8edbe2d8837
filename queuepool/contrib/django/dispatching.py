"""The queue that ``dispatch`` uses in a Django project.

Inside of ``atomic()``, a dispatch pushes in the transaction itself if the queue is in that database, else at commit.
Outside, and with ``"on_commit": False``, it pushes at once. The database is ``default``, or the one that ``on_commit``
names. ``using(within=…)``, ``using(after_commit=…)`` and ``Queue.push`` are as always.
"""

from __future__ import annotations

from typing import Any

from queuepool.config.urls import place_of
from queuepool.contrib.django import settings
from queuepool.contrib.django.database import connection_of, url_of
from queuepool.contrib.django.settings import NAME, ON_COMMIT, given
from queuepool.errors import ConfigError
from queuepool.jobs import connecting
from queuepool.jobs.client import Queue

_DEFAULT_DATABASE = "default"
#: by connection and its databases' names when it was opened: those of a test differ
_opened: dict[tuple[str | None, ...], Queue] = {}


def begin() -> None:
    """From now on, dispatches of this process follow Django's settings and transactions."""
    connecting.decide_by(_queue)


def renew() -> None:
    """Let the next dispatch open another queue."""
    while _opened:
        _opened.popitem()[1].close()


def queue_of(connection: str | None) -> Queue:
    """The queue of this connection of the settings; of their only or ``default`` one for ``None``.

    Raises ``ConfigError``.
    """
    key = (connection, *settings.database_names())
    if key not in _opened:
        _opened[key] = connecting.connect(connection=connection)
    return _opened[key]


def _queue(chosen: Queue | None) -> Queue:
    """The queue that ``configure`` has chosen, else that of the settings, in the transaction that is open."""
    return in_transaction(chosen or queue_of(None))


def in_transaction(queue: Queue) -> Queue:
    """The queue as a dispatch of this thread, now, must use it. Raises ``ConfigError``."""
    alias = watched()
    connection = connection_of(alias) if alias else None
    if connection is None or not _is_in_transaction(connection):
        return queue
    return queue.within(connection) if _is_in(alias, connection, queue) else queue.after_commit(connection)


def watched() -> str:
    """The database whose transactions matter; empty for none. Raises ``ConfigError``."""
    value = given().get(ON_COMMIT, True)
    if isinstance(value, bool):
        return _DEFAULT_DATABASE if value else ""
    try:
        if not isinstance(value, str):
            raise ValueError(f"must be True, False or a name in DATABASES, not {value!r}")
        connection_of(value)
        return value
    except ValueError as error:
        raise ConfigError(f"settings.{NAME}[{ON_COMMIT!r}]", str(error)) from None


def _is_in_transaction(connection: Any) -> bool:
    """Whether it has one open, also where the application manages them by hand."""
    return bool(connection.in_atomic_block) or (connection.connection is not None and not connection.autocommit)


def _is_in(alias: str, connection: Any, queue: Queue) -> bool:
    """Whether the queue is in this database: then a job's row can be part of the transaction."""
    if queue.stores.borrowing is None or getattr(connection, "is_in_memory_db", bool)():
        return False
    try:
        return place_of(url_of(alias)) == place_of(queue.settings.url)
    except ValueError:  # it has no URL: the queue has another one
        return False
