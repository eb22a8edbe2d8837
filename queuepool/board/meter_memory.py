"""The memory of a pool's meters, which all of its processes share: it is no file, so nothing can cut it short."""

from __future__ import annotations

import mmap

from queuepool.board import meter_layout as layout
from queuepool.board.meter_layout import Shape


class MeterMemory(mmap.mmap):
    """It knows its shape from its beginning: what is written in it may be a job's."""

    shape: Shape

    @classmethod
    def new(cls, capacity: int, queues: int) -> MeterMemory:
        """Meters of a board with so many slots and of so many queues, for all later children. Raises ``OSError``."""
        shape = Shape(capacity, min(queues, layout.MAX_QUEUES))
        memory = cls(-1, shape.size)
        memory.shape = shape
        words = memoryview(memory).cast("q")
        words[layout.POOL_MAGIC], words[layout.CAPACITY], words[layout.ROOM] = layout.MAGIC, capacity, shape.queues
        return memory
