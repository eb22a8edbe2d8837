"""The part of the meters that the steward writes: the measured queues, and what it counts itself."""

from __future__ import annotations

from collections.abc import Sequence

from queuepool.board import meter_layout as layout
from queuepool.board.counts import QueueFacts
from queuepool.board.meter_memory import MeterMemory


class PoolMeters:
    """Written by the steward; the next one goes on with it."""

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
