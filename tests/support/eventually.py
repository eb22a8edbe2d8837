"""Wait for what other processes do; the only place in the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE = 0.01


def eventually(condition: Callable[[], T], within: float = 30.0) -> T:
    """Call ``condition`` until its answer is true, and return that; fails after ``within`` seconds."""
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {within:g} s: {getattr(condition, '__name__', condition)}"
        time.sleep(_PAUSE)
    return answer
