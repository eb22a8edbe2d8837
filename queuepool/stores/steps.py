"""Many jobs in steps, so that no other client of the store waits for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


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
