"""Measure the pool's queues (how many jobs they hold, how long the next one has been ready), and publish the meters."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import ENOSPC
from hashlib import blake2b
from pathlib import Path

from queuepool.board import meters as layout
from queuepool.board.board import Board
from queuepool.board.counts import LimitFacts, QueueFacts, file_of, parts_in_use, shape_of
from queuepool.board.meters import MeterMemory
from queuepool.board.record import SharedFile
from queuepool.errors import PartDown, StoreDenied, StoreDown, StoreError
from queuepool.payload.envelope import ready_for
from queuepool.stores.contract import Measured, QueueStore
from queuepool.stores.flows import FlowPace

#: seconds between two rounds; after a turn, the steward rests this many times as long as the turn took
_PERIOD, _SHARE = 5.0, 20.0
#: seconds of one turn: the other chores wait no longer, however many queues there are
_TURN = 0.25
#: seconds between two copies of the meters
_PUBLISH_PERIOD = 1.0
#: seconds between two measurements of what takes long; and the rest after one, in multiples of its time
_SELDOM, _REST = 15.0, 50.0
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_log = logging.getLogger("queuepool")


class Measure:
    """Measures the queues in rounds. What cannot be measured stays as it was, with the time of its last measurement.

    ``count_failed`` returns how many records of failed jobs are kept. A round begins every ``period`` seconds, and is
    split into turns of ``turn`` seconds.
    """

    def __init__(
        self,
        meters: PoolMeters,
        store: QueueStore,
        count_failed: Callable[[], int],
        turn: float = _TURN,
        period: float = _PERIOD,
        count_parked: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._meters = meters
        self._store = store
        self._count_failed = count_failed
        self._count_parked = count_parked
        self._length = turn
        self._period = period
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
        return max(self._period if is_round_over else 0.0, _SHARE * (time.monotonic() - began))

    def _turn(self, until: float) -> StoreError | None:
        """Measure the next queues, at least one; returns the last refusal, if any."""
        queues, refused = self._meters.queues, None
        for index in range(self._first, len(queues)):
            try:
                parked = self._count_parked(queues[index])
                self._meters.note(index, self._facts(index, self._store.measure(queues[index]))._replace(parked=parked))
            except StoreError as error:
                if isinstance(error, StoreDown) and not isinstance(error, PartDown):
                    raise
                # A key of the wrong type, or a node that is away: the other queues are measured.
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
        """The next job's age by its payload; else since it was first seen as the next, so less than it has waited."""
        payload = found.payload or b""
        age = ready_for(payload, found.now)
        if age is not None:
            return age
        return self._meters.seen_for(index, blake2b(payload, digest_size=16).digest(), time.monotonic())


class MeasuringPace:
    """When to measure what may take long to count, as flows and limits do."""

    def __init__(self) -> None:
        self._due = 0.0

    def run(self, now: float, measure: Callable[[], object]) -> None:
        """Measure if it is due at ``now`` (monotonic seconds)."""
        if now < self._due:
            return
        began = time.monotonic()
        try:
            measure()
        except StoreDenied:
            pass  # a database from before there were such tables, or a user without this command
        finally:  # also if the store has not answered in time: it may still count
            self._due = now + max(_SELDOM, _REST * (time.monotonic() - began))


class PoolMeters:
    """The part of the meters that the steward writes: the measured queues, and its own counts.

    The next steward continues it.
    """

    def __init__(self, memory: MeterMemory, queues: Sequence[str]) -> None:
        self._memory = memory
        self._words = memoryview(memory)[: layout.FIRST_QUEUE * layout.WORD].cast("q")
        self.queues = queues[: memory.shape.queues]
        #: what this steward has measured last, by queue
        self.measured: dict[str, QueueFacts] = {}
        for index, queue in enumerate(self.queues):
            self._write(index, layout.QUEUE_NUMBERS, layout.packed_text(queue, layout.QUEUE_TEXT))
        self._words[layout.QUEUES] = len(self.queues)

    def note(self, index: int, facts: QueueFacts) -> None:
        """Write what was measured of this queue."""
        self.measured[self.queues[index]] = facts
        counts = facts.ready, facts.delayed, facts.reserved, facts.quarantined, facts.parked, facts.is_at_least
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
        """Write how many records of failed jobs are kept."""
        self._words[layout.FAILED_JOBS] = count

    def note_flows(self, flows: Sequence[FlowPace], now: float) -> None:
        """Write what was measured of the flows that are under way; ``now`` in Unix seconds."""
        self._words[layout.FLOWS] = len(flows)
        self._words[layout.FLOW_MEMBERS] = sum(one.waiting for one in flows)
        self._words[layout.FLOWS_SINCE] = int(min((one.created for one in flows), default=0.0))
        self._words[layout.FLOWS_MEASURED] = int(now)

    def note_limits(self, limits: Sequence[tuple[str, LimitFacts]]) -> None:
        """Write what was measured of these limits, as many as have rows; the number of rows comes last."""
        for row, (name, facts) in enumerate(limits[: layout.MOST_LIMITS]):
            place = (layout.FIRST_LIMIT + row * layout.LIMIT_ROW) * layout.WORD
            raw = layout.LIMIT_STRUCT.pack(*facts) + layout.packed_text(name, layout.LIMIT_TEXT)
            self._memory[place : place + len(raw)] = raw
        self._words[layout.LIMITS] = min(len(limits), layout.MOST_LIMITS)

    def count_flow(self, state: str) -> None:
        """The steward has ended a flow, which has become this."""
        self._words[layout.FIRST_FLOW_END + layout.FLOW_ENDS.index(state)] += 1

    def note_outage(self) -> None:
        """Count one more loss of the store."""
        self._words[layout.OUTAGES] += 1

    def _at(self, index: int, word: int) -> int:
        return (layout.FIRST_QUEUE + index * layout.QUEUE_ROW + word) * layout.WORD

    def _write(self, index: int, word: int, raw: bytes) -> None:
        place = self._at(index, word)
        self._memory[place : place + len(raw)] = raw


class PublishMeters:
    """Copies the meters in ``memory`` to the file beside the board, where any process of this host can read them.

    Needs no store, so the meters can be read while it is away.
    """

    def __init__(self, board: Board, memory: MeterMemory) -> None:
        self._board = board
        self._file = MetersFile(file_of(board.path), memory)
        self._due = 0.0
        self._problem = ""

    def run(self, now: float) -> float:
        if now >= self._due and self._is_there():
            self._due = now + _PUBLISH_PERIOD
            self._write()
        return max(self._due - now, 0.0) or _PUBLISH_PERIOD

    def _is_there(self) -> bool:
        """Whether the board still exists, or a master that will remove everything; otherwise the file would stay."""
        return self._board.path.exists() or self._board.has_master

    def _write(self) -> None:
        problem = ""
        try:
            if not self._file.write():
                _log.error("%s was damaged or removed; created again", file_of(self._board.path))
        except OSError as error:
            problem = f"{error.strerror}"
        if problem and problem != self._problem:
            _log.error("cannot write %s: %s; next try in %gs", file_of(self._board.path), problem, _PUBLISH_PERIOD)
        self._problem = problem


class MetersFile:
    """The file with a pool's meters at ``path``: an image of their ``memory``, written by the steward alone.

    It is written by system calls: with a mapping, a truncated file would kill the steward with SIGBUS. A damaged file
    is created again at once from the memory, which has everything.
    """

    def __init__(self, path: Path, memory: MeterMemory) -> None:
        self._path = path
        self._memory = memory
        self._shape = memory.shape
        self._file: SharedFile | None = None
        #: what was written, by the position of its first byte
        self._written: dict[int, bytes] = {}

    def write(self) -> bool:
        """Write what has changed. ``False``: the file was damaged or gone and was created again. Raises ``OSError``."""
        was_published = self._take_published()
        if is_new := not self._is_intact():
            self._make()
        if self._file:
            for first, raw in self._parts():
                if self._written.get(first) != raw:
                    self._written.pop(first, None)
                    self._put(self._file, first, raw)
                    self._written[first] = raw
        return not (is_new and was_published)

    def _parts(self) -> list[tuple[int, bytes]]:
        """The parts in writing order: the counts of rows come after the rows."""
        parts = [(0, self._memory[0 : self._shape.area_at(0)])]
        for index in range(self._shape.capacity):
            parts += parts_in_use(self._memory, self._shape, index)
        return [(first, raw) for first, raw in reversed(parts) if raw]

    def _is_intact(self) -> bool:
        """Whether the file is in place, whole and ours; an earlier steward may have created it."""
        try:
            if self._file is None:
                self._file = SharedFile(os.open(self._path, _FLAGS), self._shape.size)
            here, there = os.fstat(self._file.fd), self._path.lstat()
            is_whole = shape_of(self._file) == self._shape
            return is_whole and os.path.samestat(here, there) and here.st_uid == os.geteuid()
        except OSError:
            return False

    def _make(self) -> None:
        """Put a new file in its place, completely or not at all."""
        self.close()
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.unlink(missing_ok=True)
        flags = _FLAGS | os.O_CREAT | os.O_EXCL
        self._file = SharedFile(os.open(draft, flags, 0o600), self._shape.size)
        os.ftruncate(self._file.fd, len(self._file))  # sparse: most slots are never used
        for first, raw in self._parts():
            self._put(self._file, first, raw)
        draft.replace(self._path)

    @staticmethod
    def _put(file: SharedFile, first: int, raw: bytes) -> None:
        """Write a part wholly, or raise ``OSError``: what counts the rows must not follow rows that found no room."""
        if os.pwrite(file.fd, raw, first) < len(raw):
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    def _take_published(self) -> bool:
        """Whether a steward of this pool has created the file before; from now on, yes."""
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
