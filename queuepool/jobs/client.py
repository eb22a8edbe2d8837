"""The producer's side: a connection to push to, typed in plain words."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queuepool.config import loader as config
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.events.listeners import LISTENERS
from queuepool.payload.envelope import OBJECT_JOB, encode

if TYPE_CHECKING:
    from queuepool.stores.contract import Sizes

#: seconds, ``"90"`` or ``"5m"`` (s, m, h), a ``timedelta``, or a moment: a naive ``datetime`` is local time
Delay = float | str | timedelta | datetime


class Queue:
    """Pushes to one connection; may be shared by threads. Made by ``connect``.

    A push that returns is stored. One that raises ``StoreDown`` may be: nothing is ever sent twice behind your back.
    A server that says nothing counts as gone after the connection's ``timeout``; ``by_hand``: a person waits longer.
    """

    def __init__(self, settings: ConnectionSettings, *, by_hand: bool = False) -> None:
        # Here: the store's library is slow to import, and many never connect.
        from queuepool.payload.signing import signer_of
        from queuepool.stores.factory import Stores

        self.settings = settings
        self.stores = Stores(settings, shared=True, by_hand=by_hand)
        self._signer = signer_of(settings.signing, settings.signing_keys)

    def push(
        self,
        name: str,
        data: object = None,
        *,
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
    ) -> str:
        """Add a job and give its id. ``options``: Laravel's ``maxTries``, ``timeout``, ``backoff`` …"""
        return self._push([(name, data)], queue, delay, options)[0]

    def later(self, delay: Delay, name: str, data: object = None, *, queue: str = "default") -> str:
        """``push`` with the delay first, as Laravel says it."""
        return self.push(name, data, queue=queue, delay=delay)

    def bulk(
        self,
        jobs: Iterable[tuple[str, object]],
        *,
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
    ) -> list[str]:
        """Add many ``(name, data)`` in few round trips and give their ids."""
        return self._push(list(jobs), queue, delay, options)

    def push_object(
        self, class_name: str, properties: Mapping[str, Any], *, queue: str = "default", delay: Delay = 0
    ) -> str:
        """Add a job that a Laravel worker runs as an object of this PHP class."""
        from queuepool.payload.php_serialize import build_command  # here: for those who push such jobs

        data = {"commandName": class_name, "command": build_command(class_name, properties)}
        return self._push([(OBJECT_JOB, data)], queue, delay, None, display_name=class_name)[0]

    def push_raw(self, payload: bytes, *, queue: str = "default", delay: Delay = 0) -> None:
        """Add these bytes as they are, so also without a signature."""
        self.stores.queue.push(queue, [payload], seconds_until(delay))

    def size(self, queue: str = "default") -> int:
        """All that is still to be done: ready, delayed and reserved."""
        return self.sizes(queue).total

    def sizes(self, queue: str = "default") -> Sizes:
        return self.stores.queue.sizes(queue)

    def clear(self, queue: str = "default") -> int:
        """Drop the queue's jobs; gives how many there were."""
        return self.stores.queue.clear(queue)

    def close(self) -> None:
        self.stores.close()

    def _push(
        self,
        jobs: list[tuple[str, object]],
        queue: str,
        delay: Delay,
        options: Mapping[str, object] | None,
        display_name: str | None = None,
    ) -> list[str]:
        seconds, now = seconds_until(delay), int(time.time())
        seal = partial(self._signer.seal, queue) if self._signer else None
        about: dict[str, Any] = {"options": options, "display_name": display_name, "created_at": now, "seal": seal}
        made = [encode(name, data, delay=round(seconds), **about) for name, data in jobs]
        self.stores.queue.push(queue, [payload for _, payload in made], seconds)
        ids = [identity for identity, _ in made]
        if not LISTENERS.is_empty:
            self._tell(ids, [display_name or name for name, _ in jobs], queue, seconds)
        return ids

    def _tell(self, ids: list[str], names: list[str], queue: str, delay: float) -> None:
        from queuepool.events import JobQueued  # here: most programs listen to nothing, and have none of the events

        for identity, name in zip(ids, names, strict=True) if LISTENERS.wants(JobQueued) else ():
            LISTENERS.tell(JobQueued(identity, name, queue, delay))


def connect(where: str | Path | None = None, *, connection: str | None = None, prefix: str = "") -> Queue:
    """A connection by URL (``redis://…``, ``sqlite:///…``), by configuration file, or of the configuration in force.

    Without a name it is the file's only connection, or its ``default``. Raises ``ConfigError``. Nothing is sent before
    the first push.
    """
    if isinstance(where, str) and "://" in where:
        said = {"connection.url": where, "connection.prefix": prefix}
        return Queue(_connection(config.load(None, said, by="connect({}=...)"), None))
    path = where or os.environ.get("QUEUEPOOL_CONFIG")
    return Queue(_connection(config.load(Path(path) if path else None), connection))


def seconds_until(delay: Delay) -> float:
    """Seconds from now; a moment that has passed is now. Raises ``ValueError`` for what is no time."""
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
    """Choose where ``dispatch`` pushes to in this process; URLs, files and names as in ``connect``."""
    global _default
    if isinstance(where, ConnectionSettings):
        where = Queue(where)
    _default = where if isinstance(where, Queue) else connect(where, connection=connection)
    return _default


def default_queue() -> Queue:
    """Where ``dispatch`` pushes to: as configured, else by ``QUEUEPOOL_CONFIG``, resolved at the first use."""
    return _default or configure(connect())


def _connection(loaded: config.Config, name: str | None) -> ConnectionSettings:
    known = loaded.connections
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    try:
        return known[name or "default"]
    except KeyError:
        there = ", ".join(known)
        raise ConfigError(str(loaded.path or ""), f"no connection {name or 'default'!r}; there are: {there}") from None
