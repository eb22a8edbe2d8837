"""The classes of Laravel's jobs that carry another object, and what their handlers are offered.

Apart from ``command``, which reads them: programs that only push need no reader of PHP's data.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Offer(dict[str, Any]):
    """Arguments of which a handler takes those that it names."""


class Claim(NamedTuple):
    """A unique lock that such a job says it holds: by which id (``None``: one that is made in PHP), and how long."""

    identity: str | None
    #: whether it ends when the job begins
    until_start: bool


LISTENER = "Illuminate\\Events\\CallQueuedListener"
UNIQUE_BROADCAST = "Illuminate\\Broadcasting\\UniqueBroadcastEvent"
#: those that say of themselves that they are unique
CLAIMANTS = frozenset((LISTENER, UNIQUE_BROADCAST))
WRAPPERS = CLAIMANTS | {
    "Illuminate\\Mail\\SendQueuedMailable",
    "Illuminate\\Notifications\\SendQueuedNotifications",
    "Illuminate\\Broadcasting\\BroadcastEvent",
}
