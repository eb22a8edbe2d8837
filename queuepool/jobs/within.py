"""Pushes in the application's own transaction: the jobs' side of ``stores.sql.borrowed``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queuepool.stores.contract import PushStore
    from queuepool.stores.factory import Stores

Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
_IN_REDIS = (
    "within: this queue is in Redis, which cannot join a database's transaction: use after_commit, or a queue in "
    "that database"
)


def pushes_within(stores: Stores, connection: Any) -> tuple[PushStore, Aside]:
    """Where to push on this connection, and how to do so from a coroutine.

    Raises ``ValueError`` for a queue that is not in a database.
    """
    if stores.borrowing is None:
        raise ValueError(_IN_REDIS)

    borrowed = stores.borrowing.on(connection)
    return borrowed, borrowed.aside
