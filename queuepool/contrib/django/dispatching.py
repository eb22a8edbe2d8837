"""The queue that ``dispatch`` uses in a Django project."""

from __future__ import annotations

from queuepool.contrib.django import settings
from queuepool.contrib.django.transactions import in_transaction
from queuepool.jobs import connecting
from queuepool.jobs.client import Queue

#: by what the settings said of their databases when it was opened: while tests run, these have other names
_opened: dict[tuple[str | None, ...], Queue] = {}


def begin() -> None:
    """From now on a dispatch of this process goes by Django's settings and transactions."""
    connecting.decide_by(_queue)


def renew() -> None:
    """Open another queue with the next dispatch."""
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
