"""Wait for what other processes do; the only place in the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: seconds between two looks: at first, and at most
_FIRST, _LONGEST = 0.02, 0.1


def eventually(condition: Callable[[], T], within: float = 45.0) -> T:
    """Call ``condition`` until its answer is true, and return that; fails after ``within`` seconds.

    A pool takes half a minute to start where thirty others want the processor. The usual timeout of a job is longer.
    """
    begun = time.monotonic()
    while not (answer := condition()):
        waited = time.monotonic() - begun
        assert waited < within, f"not within {within:g} s: {getattr(condition, '__name__', condition)}"
        time.sleep(min(max(_FIRST, waited / 20), _LONGEST))  # a look may cost some ms of a processor
    return answer
