"""How verbs wait for something."""

from __future__ import annotations

import time
from collections.abc import Callable

#: seconds between looks at a board
_POLL = 0.02


def within(limit: float, is_true: Callable[[], bool], *, poll: float = _POLL) -> bool:
    """Whether it becomes true within ``limit`` seconds; waits for it, and looks every ``poll`` seconds."""
    deadline = time.monotonic() + limit
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll)
    return True
