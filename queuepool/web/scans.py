"""Searches that end: after so many jobs, or as soon as a person would wait."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from queuepool.search.look import Look

T = TypeVar("T")
#: most jobs that one request looks at; and most that it counts by what they have in common
_MOST, COUNTED = 100_000, 5_000
#: seconds that either may take, if a person waits for the page
PATIENCE = 0.1
#: values that are shown with their counts
MOST_COUNTS = 30


class Scan:
    """The pages of one look, as many as there is time for."""

    def __init__(self, look: Look, most: int = _MOST, seconds: float | None = None) -> None:
        """``seconds``: by default ``PATIENCE``."""
        self._look = look
        self._most = most
        self._seconds = PATIENCE if seconds is None else seconds
        #: whether it ended before the jobs did
        self.is_cut = False

    def pages(self, pages: Iterable[T]) -> Iterator[T]:
        """One page at least."""
        until = time.monotonic() + self._seconds
        for page in pages:
            yield page
            if self._look.seen >= self._most or time.monotonic() >= until:
                self.is_cut = True
                return
