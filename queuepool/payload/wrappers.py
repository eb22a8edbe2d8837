"""The classes of Laravel's jobs that carry another object, and what their handlers are offered.

Apart from ``wrapped``, which reads them: programs that only push need no reader of PHP's data.
"""

from __future__ import annotations

from typing import Any


class Offer(dict[str, Any]):
    """Arguments of which a handler takes those that it names."""


WRAPPERS = frozenset((
    "Illuminate\\Events\\CallQueuedListener",
    "Illuminate\\Mail\\SendQueuedMailable",
    "Illuminate\\Notifications\\SendQueuedNotifications",
    "Illuminate\\Broadcasting\\BroadcastEvent",
    "Illuminate\\Broadcasting\\UniqueBroadcastEvent",
))  # fmt: skip
