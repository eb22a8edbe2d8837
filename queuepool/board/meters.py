"""A pool's meters: its slots' counters and its queues' measured sizes, in memory and in a file beside the board.

The memory is shared by all processes of the pool and no file: nothing can truncate it, so a worker may write there for
each job and never gets a SIGBUS. The steward copies it to the file for everybody else (``steward/publish_meters.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from queuepool.board import meter_layout as layout
from queuepool.board.board import Board
from queuepool.board.counts import PoolCounts
from queuepool.board.meter_layout import Shape
from queuepool.board.meter_sums import Sums
from queuepool.board.shared_file import SharedFile

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def file_of(board: Path) -> Path:
    """The file with the meters of the board at this path."""
    return board.with_name(f"{board.name}.meters")


def read(board: Board) -> PoolCounts:
    """What this board's pool has counted and measured; what cannot be read is empty. Never raises.

    In a process of the pool this is the present state, elsewhere that of about a second ago.
    """
    if board.meters is not None:
        return _counts(board, board.meters, board.meters.shape)
    try:
        fd = os.open(file_of(board.path), _FLAGS)
    except OSError:
        return PoolCounts()
    try:
        file = SharedFile(fd, os.fstat(fd).st_size)
        shape = shape_of(file)
        return _counts(board, file, shape) if shape and shape.capacity == len(board.slots) else PoolCounts()
    except OSError:
        return PoolCounts()
    finally:
        os.close(fd)


def shape_of(file: SharedFile) -> Shape | None:
    """The shape of these meters, if it is a whole file of them, of this version. Raises ``OSError``."""
    raw = file[0 : layout.FIRST_QUEUE * layout.WORD].ljust(layout.FIRST_QUEUE * layout.WORD, b"\0")
    head = memoryview(raw).cast("q")
    shape = Shape(head[layout.CAPACITY], head[layout.ROOM])
    is_ours = head[layout.POOL_MAGIC] == layout.MAGIC and 0 <= shape.queues <= layout.MAX_QUEUES
    return shape if is_ours and shape.size == len(file) == os.fstat(file.fd).st_size else None


def parts_in_use(memory: Any, shape: Shape, index: int) -> Iterator[tuple[int, bytes]]:
    """The first byte and the content of each part of a slot's area: its head, its rows of jobs, its rows of errors.

    The head is read first: it has the numbers of rows, which are written after the rows. Nothing if no worker has had
    the slot, or if its head is nonsense.
    """
    first = shape.area_at(index)
    raw = memory[first : first + layout.HEAD * layout.WORD]
    head = memoryview(raw).cast("q")
    jobs, errors = head[layout.JOB_ROWS], head[layout.ERROR_ROWS]
    if 0 < jobs <= shape.job_rows and 0 <= errors <= layout.ROWS:
        yield first, raw
        for word, words in ((layout.FIRST_JOB, jobs * layout.JOB_ROW), (layout.FIRST_ERROR, errors * layout.ERROR_ROW)):
            place = first + word * layout.WORD
            yield place, memory[place : place + words * layout.WORD]


def _counts(board: Board, memory: Any, shape: Shape) -> PoolCounts:
    sums = Sums(shape)
    for index in range(len(board.slots)):
        parts = [raw for _, raw in parts_in_use(memory, shape, index)]
        if parts:
            sums.add(*parts)
    return sums.counts(memory[0 : shape.area_at(0)], board.header.paused)
