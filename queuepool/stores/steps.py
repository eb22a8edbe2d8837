"""Many jobs, read and taken in steps, so that no other client of the store waits for long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
#: jobs of a page at first and at most, the bytes that it should have, and how many times as many jobs the next may have
_FIRST, _MOST, _BYTES, _GROWTH = 10, 1000, 4 * 1024 * 1024, 4


def in_steps(jobs: Sequence[T], most: int, most_bytes: int, size_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The jobs in parts of at most ``most``, and of ``most_bytes``; a larger job goes alone."""
    first = size = 0
    for at, job in enumerate(jobs):
        if at - first == most or (size + size_of(job) > most_bytes and at > first):
            yield jobs[first:at]
            first, size = at, 0
        size += size_of(job)
    if jobs:
        yield jobs[first:]


class PageSize:
    """How many ``jobs`` the next page should have."""

    def __init__(self) -> None:
        self.jobs = _FIRST

    def fit(self, sizes: Iterable[int]) -> None:
        """By the sizes of the last page's jobs."""
        found = list(sizes)
        self.jobs = max(min(_BYTES * len(found) // max(sum(found), 1), _GROWTH * self.jobs, _MOST), 1)
