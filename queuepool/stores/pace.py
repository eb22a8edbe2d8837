"""Leaves a store at least half of its time: whoever reads a million jobs must not slow down those that run them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from queuepool.unix.originals import sleep

T = TypeVar("T")


class StorePace:
    """Calls one after the other, each with as much time after it as it took."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def __call__(self, call: Callable[[], T]) -> T:
        """Wait until the store has rested, then call. Blocks as long as the call before took, at most."""
        sleep(max(self._free_at - time.monotonic(), 0.0))
        began = time.monotonic()
        try:
            return call()
        finally:
            ended = time.monotonic()
            self._free_at = ended + ended - began
