"""Wait for what other processes do; the only place in the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: seconds between two looks: at first, and at most
_FIRST, _LONGEST = 0.02, 0.1
#: at most, after a look that took as long: commands are looked at half of the time, not all of it
_AFTER_A_LONG_LOOK = 0.5


def eventually(condition: Callable[[], T], within: float = 45.0) -> T:
    """Call ``condition`` until its answer is true, and return that; fails after ``within`` seconds.

    A pool takes half a minute to start where thirty others want the processor. The usual timeout of a job is longer.
    """
    begun = looked = time.monotonic()
    while not (answer := condition()):
        now = time.monotonic()
        assert now - begun < within, f"not within {within:g} s: {getattr(condition, '__name__', condition)}"
        pause = min(max(_FIRST, (now - begun) / 20), _LONGEST)
        time.sleep(max(pause, min(now - looked, _AFTER_A_LONG_LOOK)))
        looked = time.monotonic()
    return answer
