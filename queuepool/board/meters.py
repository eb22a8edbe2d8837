"""A pool's meters: its slots' counters and its queues' measured sizes, in memory and in a file beside the board.

The memory is shared by all processes of the pool and no file: nothing can truncate it, so a worker may write there for
each job and never gets a SIGBUS. The steward copies it to the file for everybody else (``steward/publish_meters.py``).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from queuepool.board import meter_layout as layout
from queuepool.board.board import Board
from queuepool.board.counts import PoolCounts
from queuepool.board.meter_sums import Sums
from queuepool.board.shared_file import SharedFile

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def new_memory(capacity: int) -> mmap.mmap:
    """Memory for the meters of a board with so many slots, shared with all later children. Raises ``OSError``."""
    memory = mmap.mmap(-1, layout.size(capacity))
    words = memoryview(memory).cast("q")
    words[layout.POOL_MAGIC], words[layout.CAPACITY] = layout.MAGIC, capacity
    return memory


def file_of(board: Path) -> Path:
    """The file with the meters of the board at this path."""
    return board.with_name(f"{board.name}.meters")


def read(board: Board) -> PoolCounts:
    """What this board's pool has counted and measured; what cannot be read is empty. Never raises.

    In a process of the pool this is the present state, elsewhere that of about a second ago.
    """
    if board.meters is not None:
        return _counts(board, board.meters)
    try:
        fd = os.open(file_of(board.path), _FLAGS)
    except OSError:
        return PoolCounts()
    try:
        file = SharedFile(fd, layout.size(len(board.slots)))
        return _counts(board, file) if is_whole(file) else PoolCounts()
    except OSError:
        return PoolCounts()
    finally:
        os.close(fd)


def is_whole(file: SharedFile) -> bool:
    """Whether this is a file of meters, of this version and for a board of this size. Raises ``OSError``."""
    head = memoryview(file[0 : 2 * layout.WORD]).cast("q")
    is_ours = head[layout.POOL_MAGIC] == layout.MAGIC and layout.size(head[layout.CAPACITY]) == len(file)
    return is_ours and os.fstat(file.fd).st_size == len(file)


def parts_in_use(memory: Any, index: int) -> Iterator[tuple[int, bytes]]:
    """The first byte and the content of each part of a slot's area: its head, its rows of jobs, its rows of errors.

    The head is read first: it has the numbers of rows, which are written after the rows. Nothing if no worker has had
    the slot, or if its head is nonsense.
    """
    first = layout.area_at(index)
    raw = memory[first : first + layout.HEAD * layout.WORD]
    head = memoryview(raw).cast("q")
    jobs, errors = head[layout.JOB_ROWS], head[layout.ERROR_ROWS]
    if 0 < jobs <= layout.ROWS and 0 <= errors <= layout.ROWS:
        yield first, raw
        for word, words in ((layout.FIRST_JOB, jobs * layout.JOB_ROW), (layout.FIRST_ERROR, errors * layout.ERROR_ROW)):
            place = first + word * layout.WORD
            yield place, memory[place : place + words * layout.WORD]


def _counts(board: Board, memory: Any) -> PoolCounts:
    sums = Sums()
    for index in range(len(board.slots)):
        parts = [raw for _, raw in parts_in_use(memory, index)]
        if parts:
            sums.add(*parts)
    paused = frozenset(filter(None, board.header.paused.split(",")))
    return sums.counts(memory[0 : layout.POOL * layout.WORD], paused)
