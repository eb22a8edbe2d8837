"""Measure the pool's queues: how many jobs they hold, and for how long the next one has been ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import blake2b

from queuepool.board import meters as layout
from queuepool.board.counts import QueueFacts
from queuepool.board.meters import MeterMemory
from queuepool.errors import StoreDown, StoreError
from queuepool.payload.ages import ready_for
from queuepool.stores.contract import Measured, QueueStore

#: seconds between two rounds; the steward rests so many times as long as it has measured
_PERIOD, _SHARE = 5.0, 20.0
#: seconds for which it measures at once: its other chores wait for so long, however many queues there are
_TURN = 0.25


class Measure:
    """What cannot be measured stays as it was, with the time of its last measurement.

    ``count_failed`` returns how many records of failed jobs are kept. A round is taken in turns of ``turn`` seconds.
    """

    def __init__(
        self, meters: PoolMeters, store: QueueStore, count_failed: Callable[[], int], turn: float = _TURN
    ) -> None:
        self._meters = meters
        self._store = store
        self._count_failed = count_failed
        self._length = turn
        #: the queue with which the next turn begins
        self._first = 0

    def run(self, now: float) -> float:
        began = time.monotonic()
        refused = self._turn(began + self._length)
        is_round_over = self._first == 0
        if is_round_over:
            self._meters.note_failed_jobs(self._count_failed())
        if refused:
            raise refused
        return max(_PERIOD if is_round_over else 0.0, _SHARE * (time.monotonic() - began))

    def _turn(self, until: float) -> StoreError | None:
        """Measure the next queues, one at least; returns the last one's refusal."""
        queues, refused = self._meters.queues, None
        for index in range(self._first, len(queues)):
            try:
                self._meters.note(index, self._facts(index, self._store.measure(queues[index])))
            except StoreDown:
                raise
            except StoreError as error:  # a key of the wrong type: the other queues are measured
                refused = StoreError(f"queue={queues[index]}: {error}")
            self._first = (index + 1) % len(queues)
            if time.monotonic() >= until:
                break
        return refused

    def _facts(self, index: int, found: Measured) -> QueueFacts:
        oldest = self._age(index, found) if found.oldest is None else found.oldest
        counts = found.ready, found.delayed, found.reserved, found.quarantined
        return QueueFacts(*counts, oldest, found.overdue, time.time(), is_at_least=found.is_at_least)

    def _age(self, index: int, found: Measured) -> float:
        """By its payload; else since it was first seen at this place, which is less than it has waited."""
        payload = found.payload or b""
        age = ready_for(payload, found.now)
        if age is not None:
            return age
        return self._meters.seen_for(index, blake2b(payload, digest_size=16).digest(), time.monotonic())


class PoolMeters:
    """The part of the meters that the steward writes: the measured queues, and what it counts itself.

    The next steward goes on with it.
    """

    def __init__(self, memory: MeterMemory, queues: Sequence[str]) -> None:
        self._memory = memory
        self._words = memoryview(memory)[: layout.FIRST_QUEUE * layout.WORD].cast("q")
        self.queues = queues[: memory.shape.queues]
        for index, queue in enumerate(self.queues):
            self._write(index, layout.QUEUE_NUMBERS, layout.packed_text(queue, layout.QUEUE_TEXT))
        self._words[layout.QUEUES] = len(self.queues)

    def note(self, index: int, facts: QueueFacts) -> None:
        """This queue was measured."""
        counts = facts.ready, facts.delayed, facts.reserved, facts.quarantined, facts.is_at_least
        self._write(index, 0, layout.QUEUE_STRUCT.pack(*counts, facts.oldest, facts.overdue, facts.measured_at))

    def seen_for(self, index: int, digest: bytes, now: float) -> float:
        """Seconds for which the job with this digest has been the queue's next; ``now`` is monotonic."""
        first = self._at(index, layout.FIRST_SEEN)
        known, since = layout.SEEN_STRUCT.unpack(self._memory[first : first + layout.SEEN_STRUCT.size])
        if known != digest:
            self._write(index, layout.FIRST_SEEN, layout.SEEN_STRUCT.pack(digest, now))
            return 0.0
        return max(now - float(since), 0.0)

    def note_failed_jobs(self, count: int) -> None:
        """So many records of failed jobs are kept."""
        self._words[layout.FAILED_JOBS] = count

    def note_outage(self) -> None:
        """The store has been lost."""
        self._words[layout.OUTAGES] += 1

    def _at(self, index: int, word: int) -> int:
        return (layout.FIRST_QUEUE + index * layout.QUEUE_ROW + word) * layout.WORD

    def _write(self, index: int, word: int, raw: bytes) -> None:
        place = self._at(index, word)
        self._memory[place : place + len(raw)] = raw
