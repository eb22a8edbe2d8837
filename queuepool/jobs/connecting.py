"""Making a ``Queue``: ``connect``, and ``configure`` for the one that ``dispatch`` uses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from queuepool.config import loader as config
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.jobs.client import Queue


def connect(where: str | Path | None = None, *, connection: str | None = None, prefix: str = "") -> Queue:
    """A queue by URL (``redis://…``, ``sqlite:///…``), by configuration file, or by the configuration in force.

    In force is what ``configure`` chose in this process, else the file that ``start`` would find. ``connection`` names
    a connection in the file; without it, the file's only connection or its ``default`` is used. ``prefix`` goes with a
    URL. Raises ``ConfigError``. Sends nothing before the first push.
    """
    if _chosen is not None and not (where or connection or prefix):
        return Queue(_chosen.settings)
    return Queue(settings_at(where, connection, prefix))


def settings_at(where: str | Path | None = None, connection: str | None = None, prefix: str = "") -> ConnectionSettings:
    """The settings with which ``connect`` makes a queue."""
    if isinstance(where, str) and "://" in where:
        overrides = {"connection.url": where, "connection.prefix": prefix}
        return _connection(config.load(None, overrides, by="connect({}=...)"), None)
    path = where or os.environ.get("QUEUEPOOL_CONFIG")
    return _connection(config.load(Path(path) if path else None), connection)


_default: Queue | None = None
#: chosen by ``configure``
_chosen: Queue | None = None
#: makes a framework's choice, given what ``configure`` chose
_decide: Callable[[Queue | None], Queue] | None = None
_has_decided = False


def configure(where: str | Path | ConnectionSettings | Queue, *, connection: str | None = None) -> Queue:
    """Choose the queue that ``dispatch`` uses in this process; arguments and errors as for ``connect``."""
    global _default, _chosen
    if isinstance(where, ConnectionSettings):
        where = Queue(where)
    _default = _chosen = where if isinstance(where, Queue) else connect(where, connection=connection)
    return _chosen


def is_configured() -> bool:
    """Whether ``default_queue`` returns at once, with nothing left to load."""
    return _default is not None or _has_decided


def default_queue() -> Queue:
    """The queue that ``dispatch`` uses: set by ``configure``, else made by ``connect()`` at its first use."""
    global _has_decided
    if _decide is None:
        return _default or _first(connect())
    queue = _decide(_default)
    _has_decided = True
    return queue


def _first(made: Queue) -> Queue:
    """Keep the first queue that any thread made; drop the others before they connect."""
    global _default
    _default = _default or made
    return _default


def decide_by(decide: Callable[[Queue | None], Queue]) -> None:
    """Called by a framework: ``decide`` chooses the queue of each dispatch, given what ``configure`` chose."""
    global _decide
    _decide = decide


def _connection(loaded: config.Config, name: str | None) -> ConnectionSettings:
    known = loaded.connections
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    try:
        return known[name or "default"]
    except KeyError:
        names = ", ".join(known)
        raise ConfigError(str(loaded.path or ""), f"no connection {name or 'default'!r}; there are: {names}") from None
