"""The steps of one attempt: what is kept of the job, and how far its cursors are."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from queuepool.errors import Leaving, QueuepoolError
from queuepool.jobs.current_job import Current, running
from queuepool.jobs.kept_values import result_of, returned
from queuepool.jobs.steps_in_flight import RunningPart, StepsInFlight
from queuepool.payload.kept_step import CURSOR, MOST_BYTES, MOST_KEPT, StepsEnd

T = TypeVar("T")
#: seconds after which the store gets a cursor's place; a worker's death loses none, as the board has it
_PLACE_KEPT = 1.0
#: names of steps that were not used that are told
_MOST_UNUSED = 10


class StepKeeper(Protocol):
    """What a worker does for the steps of its jobs, in whatever thread they run.

    ``may_leave``: while the store is away, raise ``Leaving`` if the worker is to stop, as nothing is lost by that.
    """

    #: whether other jobs share the event loop, so that no call of the store may block it
    is_shared: bool

    def of_job(self, job: Current, *, may_leave: bool) -> dict[str, bytes]:
        """What is kept of the job's steps, by name."""

    def has_any(self, job: Current) -> bool:
        """Whether anything is kept of the job's steps. Raises ``StoreDown``."""

    def keep(self, job: Current, values: Mapping[str, bytes], *, may_leave: bool) -> None:
        """Keep these values. Raises ``LeaseEnded``."""

    def show(self, job: Current, name: str, place: bytes) -> None:
        """Show on the board how far this job is; an empty ``name``: that it has steps."""

    def must_leave(self, job: Current, *, has_progress: bool) -> bool:
        """Whether the job is to leave its worker now; ``has_progress``: this attempt has done a step or a row."""


_keeper: StepKeeper | None = None
_begins = threading.Lock()


def set_step_keeper(keeper: StepKeeper | None) -> StepKeeper | None:
    """Called by the worker: who keeps the steps of its jobs. Returns who did before."""
    global _keeper
    former, _keeper = _keeper, keeper
    return former


def steps_here() -> JobSteps | None:
    """The steps of the job that runs here; ``None`` outside of a worker's job. Raises ``ValueError``."""
    job = running()
    if job is None or job.lease is None or _keeper is None:
        return None
    if not job.payload.identified:
        raise ValueError(
            "a job with steps needs an id, which its payload lacks: others with the same data would share them"
        )
    with _begins:
        found = job.steps = job.steps or JobSteps(job, _keeper)
        assert isinstance(found, JobSteps)
        return found


def has_kept_steps(job: Current) -> bool:
    """Whether steps of the job are kept. Raises ``StoreDown``."""
    return _keeper is not None and job.payload.identified and _keeper.has_any(job)


class JobSteps:
    """The steps of one attempt at a job. Its tasks and threads may all use it."""

    def __init__(self, job: Current, keeper: StepKeeper) -> None:
        self.job_id = job.id
        #: weak, as the job has its steps: what it had in memory must not wait for the garbage collection
        self._job: Current = weakref.proxy(job)
        self._keeper = keeper
        self._flight = StepsInFlight()
        #: held for what is known here; and, around it, for calls of the store, which no event loop waits for
        self._changes, self._asks = threading.Lock(), threading.Lock()
        #: what is kept, by name, once it has been read; and how many bytes that is
        self._kept: dict[str, bytes] = {}
        self._bytes = 0
        self._is_read = self._is_over = self._has_progress = False
        self._asked: set[str] = set()
        #: whether a cursor went on behind a row: the steps of the rows before it are not asked for
        self._went_on = False
        #: the places that the store does not have yet, by cursor; and the cursor whose place the board shows
        self._moved: dict[str, bytes] = {}
        self._shown = ""
        self._keep_at = 0.0

    def end(self) -> StepsEnd | None:
        """The attempt is over. What the end of its lease does with what is kept; ``None`` if nothing was read."""
        with self._changes:
            self._is_over = True
            return StepsEnd(self.job_id, places=tuple(self._moved.items())) if self._is_read else None

    @property
    def unused(self) -> tuple[str, ...]:
        """The names that are kept and that this attempt has not asked for: ten, and how many more there are."""
        names = sorted(name.removeprefix(CURSOR) for name in self._kept.keys() - self._asked)
        if self._went_on:
            names = [name for name in names if ":" not in name]
        more = len(names) - _MOST_UNUSED
        return (*names[:_MOST_UNUSED], *([f"and {more:,} more"] if more > 0 else []))

    def run(self, name: str, function: Callable[..., Any], call: Callable[[], Any]) -> Any:
        """The result of this step."""
        self.must_not_block(f"step {name!r}", "give it a coroutine function, and await it")
        self.read()
        with self.part(is_step=True):
            raw = self.begin(name)
            if raw is None:
                value = call()
                with self._final():
                    raw = result_of(name, value)
                    self.keep({name: raw})
        self.leave_if_asked()
        return returned(self.job_id, name, raw, function)

    async def run_async(self, name: str, function: Callable[..., Any], call: Callable[[], Any]) -> Any:
        """As ``run``, for a coroutine function."""
        await self.read_aside()
        with await self.part_aside(is_step=True):
            raw = self.begin(name)
            if raw is None:
                value = await call()
                with self._final():
                    raw = result_of(name, value)
                    await self.aside(partial(self.keep, {name: raw}))
        self.leave_if_asked()
        return returned(self.job_id, name, raw, function)

    def must_not_block(self, what: str, remedy: str) -> None:
        """Raise ``TypeError`` on a loop that other jobs share."""
        if self._keeper.is_shared and asyncio._get_running_loop() is not None:
            raise TypeError(f"{what} would block the other jobs of its worker: {remedy}")

    @contextmanager
    def _final(self) -> Iterator[None]:
        """What cannot be kept must not be done again: the effect has happened."""
        try:
            yield
        except (TypeError, ValueError):
            self._job.is_final = True
            raise

    async def aside(self, act: Callable[[], T]) -> T:
        """Do what asks the store, in a thread if other jobs share the loop."""
        return await asyncio.to_thread(act) if self._keeper.is_shared else act()

    def _may_leave(self) -> bool:
        """Not within a step or a hook, nor once the job has chosen its end: that would be cut."""
        job = self._job
        return job.verdict is None and not job.is_in_hook and not self._flight.is_within_step

    def part(self, *, is_step: bool) -> RunningPart:
        """A context: this step or row runs. Raises ``Leaving`` if the attempt was to leave before."""
        return self._flight.begin(is_step=is_step, may_leave=self._may_leave)

    async def part_aside(self, *, is_step: bool) -> RunningPart:
        """As ``part``, for a coroutine."""
        return await self._flight.begin_aside(is_step=is_step, may_leave=self._may_leave)

    def read(self) -> None:
        """Read what is kept, once."""
        with self._asks:
            if not self._is_read:
                self._kept = self._keeper.of_job(self._job, may_leave=self._loses_nothing)
                self._bytes = sum(map(len, self._kept)) + sum(map(len, self._kept.values()))
                self._keep_at = time.monotonic() + _PLACE_KEPT
                self._keeper.show(self._job, "", b"")
                self._is_read = True

    async def read_aside(self) -> None:
        """As ``read``, for a coroutine."""
        if not self._is_read:
            await self.aside(self.read)

    @property
    def _loses_nothing(self) -> bool:
        return self._may_leave() and not self._flight.has_others

    def begin(self, name: str) -> bytes | None:
        """What is kept under this name, which no other step of this attempt may have; ``None`` if nothing is."""
        with self._changes:
            self._must_run()
            if name in self._asked:
                raise ValueError(f"{name!r} is used twice in this attempt: use key= to tell the steps of a loop apart")
            self._asked.add(name)
            if name not in self._kept and len(self._kept) >= MOST_KEPT:
                raise ValueError(f"{name!r}: the job has {MOST_KEPT:,} steps and cursors, and may have no more")
            return self._kept.get(name)

    def begin_cursor(self, name: str) -> bytes | None:
        """As ``begin``, for a cursor."""
        raw = self.begin(CURSOR + name)
        self._went_on |= raw is not None
        return raw

    def _must_run(self) -> None:
        if self._is_over:  # another job may run here by now
            raise QueuepoolError("the attempt is over: one of its threads has asked for a step, or another row")

    def keep(self, values: Mapping[str, bytes]) -> None:
        """Keep these values, and the places of cursors that have moved."""
        with self._asks:
            with self._changes:
                places = dict(self._moved)
                written = {**values, **places}
                more = self._more_bytes(written)
            if not written:  # another thread has taken the places along
                return
            is_on_board = not values and places.keys() <= {self._shown}
            self._keeper.keep(self._job, written, may_leave=is_on_board and self._loses_nothing)
            with self._changes:
                self._kept |= written
                self._bytes += more
                self._has_progress = True
                self._keep_at = time.monotonic() + _PLACE_KEPT
                for name in [name for name, place in places.items() if self._moved[name] is place]:
                    del self._moved[name]

    def _more_bytes(self, values: Mapping[str, bytes]) -> int:
        """How many more bytes are kept with these. Raises ``ValueError`` if that is too much."""
        more = sum(len(raw) - len(self._kept.get(name, b"")) for name, raw in values.items())
        more += sum(len(name.encode()) for name in values if name not in self._kept)
        if self._bytes + more > MOST_BYTES:
            raise ValueError(f"{', '.join(map(repr, values))}: the results of a job's steps have at most 1 MiB")
        return more

    def moves(self, cursor: str, place: bytes) -> bool:
        """A row of this cursor is done; returns whether the store is to get its place now."""
        name = CURSOR + cursor
        with self._changes:
            self._must_run()
            # The board has room for one place. What it shows must never be older than what the store has of it: the
            # steward writes it over that.
            has_room = self._shown == name or self._shown not in self._moved
            self._moved[name] = place
            self._has_progress = True
            if has_room:
                self._shown = name
                self._keeper.show(self._job, name, place)
            return not has_room or time.monotonic() >= self._keep_at

    def leave_if_asked(self) -> None:
        """At the end of a step or a row: raise ``Leaving`` if the job is to leave its worker, and no other runs."""
        must = self._keeper.must_leave(self._job, has_progress=self._has_progress)
        if must and self._may_leave() and self._flight.leave():
            raise Leaving
