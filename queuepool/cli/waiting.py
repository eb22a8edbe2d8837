"""How verbs wait for something."""

from __future__ import annotations

import time
from collections.abc import Callable

#: seconds between looks at a board
_POLL = 0.02


def within(limit: float, is_true: Callable[[], bool], *, poll: float = _POLL) -> bool:
    """Wait until it becomes true, at most ``limit`` seconds, looking every ``poll`` seconds; returns whether it did."""
    deadline = time.monotonic() + limit
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll)
    return True
