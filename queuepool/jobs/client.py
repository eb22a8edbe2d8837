"""The producer's side: ``Queue``, and ``connect`` and ``configure``, which make one."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queuepool.config import loader as config
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import ConfigError
from queuepool.events.listeners import LISTENERS
from queuepool.jobs import context
from queuepool.jobs.encryption import Encryption
from queuepool.jobs.job_options import Seconds, Wired
from queuepool.jobs.push_options import fields_of
from queuepool.payload.ending import Lock
from queuepool.payload.envelope import OBJECT_JOB, encode
from queuepool.payload.unique_locks import claimed, new_lock

if TYPE_CHECKING:
    from queuepool.stores.contract import Sizes

#: seconds that a unique lock lasts, unless said otherwise
DAY = 86400.0
#: seconds, ``"90"`` or ``"5m"`` (s, m, h), a ``timedelta``, or a ``datetime``; a naive one is local time
Delay = float | str | timedelta | datetime


class Queue:
    """Pushes to one connection. Threads may share it. ``connect`` makes one.

    A push that returns has been stored. A push that raises ``StoreDown`` may have been stored: it is never resent
    automatically. A silent server counts as gone after the connection's ``timeout`` in seconds; with ``by_hand``, for
    a person at a terminal, the wait is longer.
    """

    def __init__(self, settings: ConnectionSettings, *, by_hand: bool = False) -> None:
        # Imported here: the store's library is slow to import, and many programs never connect.
        from queuepool.payload.signing import signer_of
        from queuepool.stores.factory import Stores

        self.settings = settings
        self.stores = Stores(settings, shared=True, by_hand=by_hand)
        self._encryption = Encryption(settings)
        self._signer = signer_of(settings.signing, settings.signing_keys)

    def push(
        self,
        name: str,
        data: object = None,
        *,
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
        encrypted: bool = False,
        unique_id: str | None = None,
        unique_for: Seconds = DAY,
    ) -> str:
        """Add a job and return its id. ``options``: Laravel's ``tries``, ``maxExceptions``, ``failOnTimeout``,
        ``backoff``, ``timeout`` and ``retryUntil``; times in seconds, ``retryUntil`` in Unix seconds or a ``datetime``.

        ``encrypted``: only queuepool's workers with the same ``app_key`` can read the data. ``unique_id``: take the
        lock of this name and identity for ``unique_for`` seconds, until the job is over; if another job holds it,
        nothing is added and the id is empty.

        Raises ``BadPayload`` for an invalid name, data that JSON cannot hold or too much of it, ``ValueError`` for an
        invalid delay or option, and ``StoreError``.
        """
        claim = new_lock(name, unique_id, seconds_until(unique_for))
        return self._push([(name, data)], queue, delay, options, encrypted=encrypted, lock=claim)[0]

    def later(self, delay: Delay, name: str, data: object = None, *, queue: str = "default") -> str:
        """``push`` with the delay first, like Laravel's ``later``."""
        return self.push(name, data, queue=queue, delay=delay)

    def bulk(
        self,
        jobs: Iterable[tuple[str, object]],
        *,
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
        encrypted: bool = False,
    ) -> list[str]:
        """Add many ``(name, data)`` in few round trips and return their ids. Raises as ``push`` does."""
        return self._push(list(jobs), queue, delay, options, encrypted=encrypted)

    def push_object(
        self,
        class_name: str,
        properties: Mapping[str, Any],
        *,
        protected: Collection[str] = (),
        private: Collection[str] = (),
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
        encrypted: bool = False,
        unique_id: str | None = None,
        unique_for: Seconds = DAY,
    ) -> str:
        """Add a job that a Laravel worker runs as an object of this PHP class, and return its id.

        ``protected`` and ``private`` name the properties that the class declares so. ``encrypted``: with ``app_key``,
        as Laravel does for ``ShouldBeEncrypted``. ``unique_id`` and ``unique_for`` as for ``push``, with the lock that
        Laravel (from 11 on) takes for the class: its dispatches and these exclude one another. Raises as ``push`` does,
        and ``PhpDataRefused``, a ``ValueError``, for a value that PHP cannot hold.
        """
        from queuepool.payload.php_serialize import build_command  # imported here: few programs push such jobs

        command = build_command(class_name, properties, protected, private)
        data = {"commandName": class_name, "command": self._encryption.command(command) if encrypted else command}
        claim = new_lock(class_name, unique_id, seconds_until(unique_for))
        return self._push([(OBJECT_JOB, data)], queue, delay, options, display_name=class_name, lock=claim)[0]

    def push_raw(self, payload: bytes, *, queue: str = "default", delay: Delay = 0) -> None:
        """Add these bytes unchanged, and so unsigned. Raises ``StoreError``."""
        self.stores.queue.push(queue, [payload], seconds_until(delay))

    def size(self, queue: str = "default") -> int:
        """The number of jobs not yet done: ready, delayed and reserved."""
        return self.sizes(queue).total

    def sizes(self, queue: str = "default") -> Sizes:
        """The number of ready, delayed, reserved and quarantined jobs."""
        return self.stores.queue.sizes(queue)

    def clear(self, queue: str = "default") -> int:
        """Drop the queue's ready, delayed and reserved jobs; returns how many there were."""
        return self.stores.queue.clear(queue)

    def close(self) -> None:
        """Close the connections to the stores."""
        self.stores.close()

    def _push(
        self,
        jobs: list[tuple[str, object]],
        queue: str,
        delay: Delay,
        options: Mapping[str, object] | None,
        display_name: str | None = None,
        encrypted: bool = False,
        lock: Lock | None = None,
    ) -> list[str]:
        seconds, now = seconds_until(delay), int(time.time())
        about: dict[str, Any] = {
            "options": fields_of(options) if options and not isinstance(options, Wired) else options,
            "display_name": display_name,
            "created_at": now,
            "context": claimed(context.texts(), lock, kind_of(self.settings.url)),
            "encrypt": self._encryption.data if encrypted else None,
            "sign": partial(self._signer.sign, queue) if self._signer else None,
        }
        made = [encode(name, data, delay=round(seconds), **about) for name, data in jobs]
        if lock is None:
            self.stores.queue.push(queue, [payload for _, payload in made], seconds)
        elif not self.stores.queue.push_unique(queue, made[0][1], seconds, lock):
            return [""]
        ids = [identity for identity, _ in made]
        if not LISTENERS.is_empty:
            self._emit_queued(ids, [display_name or name for name, _ in jobs], queue, seconds)
        return ids

    def _emit_queued(self, ids: list[str], names: list[str], queue: str, delay: float) -> None:
        from queuepool.events import JobQueued  # imported here: most programs have no listeners

        for identity, name in zip(ids, names, strict=True) if LISTENERS.wants(JobQueued) else ():
            LISTENERS.emit(JobQueued(identity, name, queue, delay))


def connect(where: str | Path | None = None, *, connection: str | None = None, prefix: str = "") -> Queue:
    """A queue by URL (``redis://…``, ``sqlite:///…``), by configuration file, or of the configuration in force.

    ``connection`` names one of the file; without it, the file's only connection or its ``default`` is used. ``prefix``
    goes with a URL. Raises ``ConfigError``. Sends nothing before the first push.
    """
    if isinstance(where, str) and "://" in where:
        overrides = {"connection.url": where, "connection.prefix": prefix}
        return Queue(_connection(config.load(None, overrides, by="connect({}=...)"), None))
    path = where or os.environ.get("QUEUEPOOL_CONFIG")
    return Queue(_connection(config.load(Path(path) if path else None), connection))


def seconds_until(delay: Delay) -> float:
    """Seconds from now, 0.0 for the past. Raises ``ValueError`` for a value that is not a delay."""
    if isinstance(delay, str):
        return values.seconds(delay)
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    elif isinstance(delay, datetime):
        delay = (delay.astimezone(UTC) - datetime.now(UTC)).total_seconds()
    if not isinstance(delay, (int, float)) or not -1e10 < delay < 1e10:
        raise ValueError(f"{delay!r} is no delay: give seconds, '5m', a timedelta or a datetime")
    return max(float(delay), 0.0)


_default: Queue | None = None


def configure(where: str | Path | ConnectionSettings | Queue, *, connection: str | None = None) -> Queue:
    """Choose the queue that ``dispatch`` uses in this process; URLs, files, names and errors as in ``connect``."""
    global _default
    if isinstance(where, ConnectionSettings):
        where = Queue(where)
    _default = where if isinstance(where, Queue) else connect(where, connection=connection)
    return _default


def default_queue() -> Queue:
    """The queue that ``dispatch`` uses: set by ``configure``, else made by ``connect()`` at its first use."""
    return _default or configure(connect())


def _connection(loaded: config.Config, name: str | None) -> ConnectionSettings:
    known = loaded.connections
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    try:
        return known[name or "default"]
    except KeyError:
        names = ", ".join(known)
        raise ConfigError(str(loaded.path or ""), f"no connection {name or 'default'!r}; there are: {names}") from None
