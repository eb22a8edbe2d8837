"""Laravel's job classes that carry another object, and what their handlers are offered.

Separate from ``command``, which reads them: programs that only push need no reader of PHP's data.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Offer(dict[str, Any]):
    """Arguments from which a handler takes those that it names."""


class Claim(NamedTuple):
    """A unique lock that such a job claims to hold; ``identity`` is ``None`` if only PHP can compute it."""

    identity: str | None
    #: whether it is released when the job begins
    until_start: bool


LISTENER = "Illuminate\\Events\\CallQueuedListener"
UNIQUE_BROADCAST = "Illuminate\\Broadcasting\\UniqueBroadcastEvent"
#: those whose payloads show whether they are unique
CLAIMANTS = frozenset((LISTENER, UNIQUE_BROADCAST))
WRAPPERS = CLAIMANTS | {
    "Illuminate\\Mail\\SendQueuedMailable",
    "Illuminate\\Notifications\\SendQueuedNotifications",
    "Illuminate\\Broadcasting\\BroadcastEvent",
}
