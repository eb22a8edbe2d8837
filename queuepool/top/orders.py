"""The pages, and the orders in which the rows of each can be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from queuepool.board.overview import ProcessRow

T = TypeVar("T")


class Page(Enum):
    """What the large table has."""

    WORKERS = "workers"
    QUEUES = "queues"
    JOBS = "jobs"


class Order(NamedTuple):
    """``key`` is the value to sort by, the largest first; ``None``: as they come."""

    name: str
    key: Callable[[Any], Any] | None = None


def _running(process: ProcessRow) -> float:
    return process.job.running if process.job else -1.0


def _number(number: int | None) -> int:
    return -1 if number is None else number


ORDERS: Mapping[Page, Sequence[Order]] = {
    Page.WORKERS: (
        Order("number"),
        Order("running", _running),
        Order("memory", lambda process: _number(process.memory)),
        Order("done", lambda process: _number(process.done)),
        Order("failed", lambda process: _number(process.failed)),
    ),
    Page.QUEUES: (
        Order("ready", lambda queue: (queue.facts.ready, queue.facts.oldest)),
        Order("oldest", lambda queue: (queue.facts.oldest, queue.facts.ready)),
        Order("priority"),
    ),
    Page.JOBS: (
        Order("time taken", lambda job: job.counts.run.total),
        Order("ended", lambda job: job.counts.ended),
        Order("failed", lambda job: job.counts.failed),
        Order("name"),
    ),
}


def ordered(page: Page, number: int, is_reversed: bool, items: Iterable[T]) -> list[T]:
    """The items of a page in its ``number``-th order."""
    key = ORDERS[page][number].key
    found = list(items) if key is None else sorted(items, key=key, reverse=True)
    return found[::-1] if is_reversed else found
