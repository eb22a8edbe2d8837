"""Measure the pool's queues: how many jobs they hold, and for how long the next one has been ready."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from queuepool.board import meters as layout
from queuepool.board.board import Board
from queuepool.board.counts import QueueFacts, file_of, parts_in_use, shape_of
from queuepool.board.meters import MeterMemory
from queuepool.board.shared_file import SharedFile
from queuepool.errors import StoreDown, StoreError
from queuepool.payload.envelope import ready_for
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


# Copy the meters to the file beside the board, where every process of this host can read them without the pool.

_COPY_PERIOD = 1.0
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_log = logging.getLogger("queuepool")


class PublishMeters:
    """Needs no store, so that the meters are read while it is away. ``memory`` has those of the board's pool."""

    def __init__(self, board: Board, memory: MeterMemory) -> None:
        self._board = board
        self._file = MetersFile(file_of(board.path), memory)
        self._due = 0.0
        self._problem = ""

    def run(self, now: float) -> float:
        if now >= self._due and self._is_there():
            self._due = now + _COPY_PERIOD
            self._write()
        return max(self._due - now, 0.0) or _COPY_PERIOD

    def _is_there(self) -> bool:
        """Whether the board is: without it, and without a master that removes all, the file would stay."""
        return self._board.path.exists() or self._board.has_master

    def _write(self) -> None:
        problem = ""
        try:
            if not self._file.write():
                _log.error("%s was damaged or gone, and is made anew", file_of(self._board.path))
        except OSError as error:
            problem = f"{error.strerror}"
        if problem and problem != self._problem:
            _log.error("cannot write %s: %s; next try in %gs", file_of(self._board.path), problem, _COPY_PERIOD)
        self._problem = problem


class MetersFile:
    """The file with a pool's meters at ``path``: an image of their ``memory``, written by the steward alone.

    It is written by system calls: a mapping would end the steward with SIGBUS if somebody cut the file short. The
    memory has everything, so a damaged file is made anew from it at once.
    """

    def __init__(self, path: Path, memory: MeterMemory) -> None:
        self._path = path
        self._memory = memory
        self._shape = memory.shape
        self._file: SharedFile | None = None
        #: what was written, by its first byte
        self._written: dict[int, bytes] = {}

    def write(self) -> bool:
        """Write what has changed. ``False``: the file was damaged or gone, and is made anew. Raises ``OSError``."""
        was_published = self._take_published()
        if is_new := not self._is_intact():
            self._make()
        if self._file:
            for first, raw in self._parts():
                if self._written.get(first) != raw:
                    self._file[first : first + len(raw)] = raw
                    self._written[first] = raw
        return not (is_new and was_published)

    def _parts(self) -> list[tuple[int, bytes]]:
        """In the order in which they are written: the numbers of rows come after the rows."""
        parts = [(0, self._memory[0 : self._shape.area_at(0)])]
        for index in range(self._shape.capacity):
            parts += parts_in_use(self._memory, self._shape, index)
        return [(first, raw) for first, raw in reversed(parts) if raw]

    def _is_intact(self) -> bool:
        """Whether the file is in its place, whole and ours; an earlier steward may have made it."""
        try:
            if self._file is None:
                self._file = SharedFile(os.open(self._path, _FLAGS), self._shape.size)
            here, there = os.fstat(self._file.fd), self._path.lstat()
            is_whole = shape_of(self._file) == self._shape
            return is_whole and os.path.samestat(here, there) and here.st_uid == os.geteuid()
        except OSError:
            return False

    def _make(self) -> None:
        """A new file in its place: complete or absent."""
        self.close()
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.unlink(missing_ok=True)
        flags = _FLAGS | os.O_CREAT | os.O_EXCL
        self._file = SharedFile(os.open(draft, flags, 0o600), self._shape.size)
        os.ftruncate(self._file.fd, len(self._file))  # sparse: most slots are never used
        for first, raw in self._parts():
            self._file[first : first + len(raw)] = raw
        draft.replace(self._path)

    def _take_published(self) -> bool:
        """Whether a steward of this pool has made the file before."""
        words = memoryview(self._memory)[: layout.FIRST_QUEUE * layout.WORD].cast("q")
        was, words[layout.PUBLISHED] = bool(words[layout.PUBLISHED]), 1
        return was

    def close(self) -> None:
        """Close the file."""
        self._written.clear()
        if self._file:
            with suppress(OSError):
                os.close(self._file.fd)
            self._file = None
