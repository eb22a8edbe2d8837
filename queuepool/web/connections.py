"""The stores of a configuration: each is opened once for pages and once for actions, and asked as often as for one.

A page does not wait for one that is away.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied, StoreDown, StoreError, StoreFull
from queuepool.history.past import HistorySpan, Past
from queuepool.jobs.client import Queue
from queuepool.operating.choice import Choice
from queuepool.operating.notices import LeftPool, PublishedPool, latest_of, left_of
from queuepool.operating.past_report import read_past
from queuepool.operating.queues import QueueMark, age, all_queues, known_queues, marks_of, untaken
from queuepool.stores.contract import NOTICE_KEPT, Measured
from queuepool.web.threads import Fresh, Snapshot

T = TypeVar("T")
#: seconds between two reads of a store for the pages that everybody watches
_LASTS = 2.0
#: seconds for which a page waits for them: as long as nothing is known, and later; and for what it counts by itself
FIRST_PATIENCE, PATIENCE, COUNTING_PATIENCE = 1.0, 0.04, 3.0
#: threads that read histories and counts of one store, and counts of it that are remembered
_READERS, _MOST_COUNTS = 2, 50
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
    #: jobs that wait for places of limits
    parked: int = 0


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a store tells of the pools and queues of its connection."""

    queues: tuple[MeasuredQueue, ...] = ()
    #: of all queues, also of those that are not measured
    names: tuple[str, ...] = ()
    pools: tuple[PublishedPool, ...] = ()
    left: tuple[LeftPool, ...] = ()
    failed: int | None = None
    #: what is unknown or left out, and what is odd, a line each
    remarks: tuple[str, ...] = ()


class StoreLink:
    """One connection of the configuration. Safe for threads. Raises ``ConfigError`` if a driver is missing."""

    def __init__(self, choice: Choice, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.choice = choice
        self._queue, self._by_hand = Queue(settings), Queue(settings, by_hand=True)  # nothing is sent yet
        # Why nothing can be asked there, as the reader of the facts has seen last. Nobody else decides that: a page
        # whose own search takes too long must not shut out all others, and many of them must not wait for one store.
        self._away = ""
        # For each store its own: one that hangs delays no other. What everybody watches waits for nothing else.
        self._watcher = ThreadPoolExecutor(1, f"queuepool-watch-{settings.name}")
        self._readers = ThreadPoolExecutor(_READERS, f"queuepool-read-{settings.name}")
        self._facts = Fresh(self._watcher, self._read, _LASTS, (StoreError,))
        self._pasts = {
            name: Fresh(self._readers, partial(self._read_past, seconds), _PAST_LASTS, (StoreError,))
            for name, seconds in RANGES.items()
        }
        self._counts: OrderedDict[Hashable, Fresh[Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._reads, self._is_closed = 0, False

    @property
    def name(self) -> str:
        return self.settings.name

    def ask(self, read: Callable[[Queue], T]) -> T:
        """For a page: what ``read`` finds there. Raises ``StoreError``, at once while the store is away."""
        if self._away:
            self._facts.get(PATIENCE)  # looks again, if it is time to
            if why := self._away:
                raise StoreDown(why)
        try:
            with self._reading() as queue:
                return read(queue)
        except StoreError as error:
            if _is_away(error):  # or this alone took too long
                self._facts.doubt()
                self._facts.get(0.0)
            raise

    def do(self, act: Callable[[Queue], T]) -> T:
        """For an action: carry it out as a command does. Raises ``StoreError``.

        It tries even if the store was away a moment ago, and waits longer.
        """
        return act(self._by_hand)

    def patience(self, *, is_lost: bool) -> float:
        """Seconds to wait for the facts. ``is_lost``: a pool of this host knows that the store is away."""
        return PATIENCE if is_lost or self._facts.is_known else FIRST_PATIENCE

    def facts(self, patience: float) -> Snapshot[StoreFacts]:
        """What everybody watches. With a patience of 0 they are only asked for, so that others can be meanwhile."""
        return self._facts.get(patience)

    def queues(self, opened: Queue) -> list[str]:
        """The names of the pools' queues and of those that were not empty a moment ago.

        The store is not asked for them again, unless nothing is known of it: Redis goes through all its keys for that.
        """
        found = self.facts(self.patience(is_lost=False)).value
        if found is None:
            return known_queues(self.choice, self.settings, opened.stores)
        return [*dict.fromkeys((*self.choice.queues(self.settings), *found.names))]

    def past(self, name: str, patience: float) -> Snapshot[tuple[HistorySpan, Past]]:
        """The history of one of ``RANGES``."""
        return self._pasts[name].get(patience)

    def counted(self, key: Hashable, count: Callable[[Queue], T]) -> Snapshot[T]:
        """What ``count`` finds, once for all who ask for this ``key`` within a moment."""
        with self._lock:
            if key not in self._counts:
                self._counts[key] = Fresh(self._readers, lambda: self.ask(count), _LASTS, (StoreError,))
            found: Fresh[T] = self._counts[key]
            self._counts.move_to_end(key)
            if len(self._counts) > _MOST_COUNTS:
                self._counts.popitem(last=False)
        return found.get(COUNTING_PATIENCE)

    def expire(self) -> None:
        """Something was changed: what is shown next must show it."""
        self._facts.expire()
        with self._lock:
            self._counts.clear()

    def close(self) -> None:
        """Close the store, after the reads under way; does not wait for them."""
        for readers in (self._watcher, self._readers):
            readers.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_closed, is_idle = True, not self._reads
        if is_idle:
            self._queue.close()
        self._by_hand.close()

    @contextmanager
    def _reading(self) -> Iterator[Queue]:
        """The store, for a read. One that goes on after ``close`` may connect again: the last to end closes that."""
        with self._lock:
            self._reads += 1
        try:
            yield self._queue
        finally:
            with self._lock:
                self._reads -= 1
                is_last = self._is_closed and not self._reads
            if is_last:
                self._queue.close()

    def _read(self) -> StoreFacts:
        try:
            with self._reading() as queue:
                found = self._read_all(queue)
        except StoreError as error:
            self._away = str(error) if _is_away(error) else ""
            raise
        self._away = ""
        return found

    def _read_past(self, seconds: float) -> tuple[HistorySpan, Past]:
        return self.ask(lambda queue: read_past(queue.stores, seconds))

    def _read_all(self, queue: Queue) -> StoreFacts:
        remarks = list[str]()
        names = tuple(all_queues(self.choice, self.settings, queue, remarks.append))
        queues = tuple(self._measured(queue, names, remarks))
        pools, left = self._pools(queue, remarks)
        failed = None
        try:
            failed = queue.stores.failed.count()
        except StoreError as error:  # it may be elsewhere, and away
            remarks.append(f"the failed jobs cannot be counted: {error}")
        if (forwarder := queue.stores.forwarder) and (waiting := forwarder.count()):
            remarks.append(f"{waiting} failed jobs are not yet recorded: the failed store does not take them")
        return StoreFacts(queues, names, pools, left, failed, tuple(remarks))

    def _measured(self, queue: Queue, names: Sequence[str], remarks: list[str]) -> Iterator[MeasuredQueue]:
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
        parked = _parked(queue, sizes)
        for name, one in sizes.items():
            if name == self.settings.outcomes and (words := untaken(name, one)):
                remarks.append(words)
            yield MeasuredQueue(name, one, age(one), marks[name], parked.get(name, 0))

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


def _parked(queue: Queue, names: Iterable[str]) -> dict[str, int]:
    """How many jobs of each queue wait for places of limits; one question where there are no limits."""
    with suppress(StoreDenied):
        return {name: queue.parked(name) for name in names} if queue.stores.limits.all() else {}
    return {}


def _is_away(error: StoreError) -> bool:
    """Whether the jobs' own store has not answered."""
    return isinstance(error, StoreDown) and not isinstance(error, StoreDenied | StoreFull) and not error.store
