"""The stores of a configuration, as pages read them: each is opened once, and one that is away keeps nobody waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied, StoreDown, StoreError, StoreFull
from queuepool.history.past import HistorySpan, Past
from queuepool.jobs.client import Queue
from queuepool.operating.choice import Choice
from queuepool.operating.notices import LeftPool, PublishedPool, latest_of, left_of
from queuepool.operating.past_report import read_past
from queuepool.operating.queues import QueueMark, age, all_queues, marks_of, untaken
from queuepool.stores.contract import NOTICE_KEPT, Measured
from queuepool.web.threads import Fresh, Snapshot, WebThreads

T = TypeVar("T")
#: seconds between two reads of a store for the pages that everybody watches
_LASTS = 2.0
#: seconds for which a page waits for them: while nothing is known, or nobody has asked for so long; and otherwise
FIRST_PATIENCE, _LONG_AGO, PATIENCE = 1.0, 10.0, 0.04
#: seconds after which a store that was away is tried again
_TRIED_AGAIN = 1.0
#: seconds between two reads of the history, which is kept by minutes
_PAST_LASTS = 10.0
#: the ranges of the history, in seconds
RANGES: Mapping[str, float] = MappingProxyType({"1h": 3600.0, "6h": 21600.0, "2d": 172800.0, "35d": 3024000.0})
#: most queues that are measured
MAX_QUEUES = 500


@dataclass(frozen=True, slots=True)
class MeasuredQueue:
    """One queue of a connection, now."""

    name: str
    sizes: Measured
    #: for how long its next job has been ready, in seconds; ``None`` = none is, or it is unknown
    oldest: float | None
    mark: QueueMark


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a store tells of the pools and queues of its connection."""

    queues: tuple[MeasuredQueue, ...] = ()
    pools: tuple[PublishedPool, ...] = ()
    left: tuple[LeftPool, ...] = ()
    failed: int | None = None
    #: what is unknown or left out, and what is odd, a line each
    remarks: tuple[str, ...] = ()


class StoreLink:
    """One connection of the configuration. Safe for threads. Raises ``ConfigError`` if a driver is missing."""

    def __init__(self, choice: Choice, settings: ConnectionSettings, threads: WebThreads) -> None:
        self.settings = settings
        self.choice = choice
        self._queue = Queue(settings)  # nothing is sent yet
        self._away = ("", 0.0)
        self._facts = Fresh(threads, self._read, _LASTS, (StoreError,))
        self._pasts = {
            name: Fresh(threads, partial(self._read_past, seconds), _PAST_LASTS, (StoreError,))
            for name, seconds in RANGES.items()
        }

    @property
    def name(self) -> str:
        return self.settings.name

    def ask(self, read: Callable[[Queue], T]) -> T:
        """What ``read`` finds there. Raises ``StoreError``, at once if the store was away a moment ago."""
        why, until = self._away
        if time.monotonic() < until:
            raise StoreDown(why)
        try:
            return read(self._queue)
        except (StoreDenied, StoreFull):  # it answers
            raise
        except StoreDown as error:
            if not error.store:  # else one of the stores beside the jobs
                self._away = str(error), time.monotonic() + _TRIED_AGAIN
            raise

    def patience(self, *, is_lost: bool) -> float:
        """Seconds to wait for the facts. ``is_lost``: a pool of this host knows that the store is away."""
        return PATIENCE if is_lost or self._facts.is_known(_LONG_AGO) else FIRST_PATIENCE

    def facts(self, patience: float) -> Snapshot[StoreFacts]:
        """What everybody watches. With a patience of 0 they are only asked for, so that others can be meanwhile."""
        return self._facts.get(patience)

    def past(self, name: str, patience: float) -> Snapshot[tuple[HistorySpan, Past]]:
        """The history of one of ``RANGES``."""
        return self._pasts[name].get(patience)

    def expire(self) -> None:
        """Something was changed: what is shown next must show it."""
        self._facts.expire()

    def close(self) -> None:
        self._queue.close()

    def _read(self) -> StoreFacts:
        return self.ask(self._read_all)

    def _read_past(self, seconds: float) -> tuple[HistorySpan, Past]:
        return self.ask(lambda queue: read_past(queue.stores, seconds))

    def _read_all(self, queue: Queue) -> StoreFacts:
        remarks = list[str]()
        queues = tuple(self._measured(queue, remarks))
        pools, left = self._pools(queue, remarks)
        failed = None
        try:
            failed = queue.stores.failed.count()
        except StoreError as error:  # it may be elsewhere, and away
            remarks.append(f"the failed jobs cannot be counted: {error}")
        if (forwarder := queue.stores.forwarder) and (waiting := forwarder.count()):
            remarks.append(f"{waiting} failed jobs are not yet recorded: the failed store does not take them")
        return StoreFacts(queues, pools, left, failed, tuple(remarks))

    def _measured(self, queue: Queue, remarks: list[str]) -> Iterator[MeasuredQueue]:
        names = list(all_queues(self.choice, self.settings, queue, remarks.append))
        if len(names) > MAX_QUEUES:
            remarks.append(f"{len(names) - MAX_QUEUES} more queues are not shown")
        sizes = dict[str, Measured]()
        for name in names[:MAX_QUEUES]:
            try:
                sizes[name] = queue.stores.queue.measure(name)
            except StoreDown:
                raise
            except StoreError as error:  # a key of the wrong type hides no other queue
                remarks.append(f"queue {name}: {error}")
        marks = marks_of(self.choice, queue, list(sizes), remarks.append)
        for name, one in sizes.items():
            if name == self.settings.outcomes and (words := untaken(name, one)):
                remarks.append(words)
            yield MeasuredQueue(name, one, age(one), marks[name])

    def _pools(self, queue: Queue, remarks: list[str]) -> tuple[tuple[PublishedPool, ...], tuple[LeftPool, ...]]:
        try:
            notices = queue.stores.control.pools(NOTICE_KEPT)
        except StoreError as error:
            remarks.append(f"the pools of other hosts are unknown: {error}")
            return (), ()
        now = queue.stores.queue.now()
        pools, left = latest_of(notices, now), list[LeftPool]()
        with suppress(StoreError):
            left = left_of(queue.stores.control.left(), now, pools)
        return tuple(pools), tuple(left)
