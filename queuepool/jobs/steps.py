"""Steps and cursors: what a job has done is kept with it, and its next attempts go on behind it.

A step runs once. Its result is kept as JSON, and its caller gets what that says, in the first attempt too. A cursor
goes on behind the last row that was done. At the end of a step or a row the job leaves by itself if its worker is to
stop; it goes back to the head of its queue, and no try is used up.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from queuepool.errors import BadArguments, Leaving
from queuepool.jobs.current_job import Current, running
from queuepool.jobs.from_json import Converter, Unreadable, converter_of, hints_of, within
from queuepool.payload.kept_step import CURSOR, MOST_BYTES, MOST_KEPT, MOST_NAME, MOST_PLACE, StepsEnd
from queuepool.payload.strict_json import as_json

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
#: seconds after which the store gets a cursor's place; a worker's death loses none, as the board has it
_PLACE_KEPT = 1.0


class StepKeeper(Protocol):
    """What a worker does for the steps of its jobs, in whatever thread they run."""

    #: whether other jobs share the event loop, so that no call of the store may block it
    is_shared: bool

    def of_job(self, job: Current) -> dict[str, bytes]:
        """What is kept of the job's steps, by name."""

    def keep(self, job: Current, values: Mapping[str, bytes]) -> None:
        """Keep these values. Raises ``LeaseLost``."""

    def show(self, name: str, place: bytes) -> None:
        """Show on the board how far the job that runs here is; an empty ``name``: that it has steps."""

    def must_leave(self, job: Current, *, has_progress: bool) -> bool:
        """Whether the job is to leave its worker now; ``has_progress``: this attempt has done a step or a row."""


_keeper: StepKeeper | None = None
_begins = threading.Lock()


def set_step_keeper(keeper: StepKeeper | None) -> StepKeeper | None:
    """Called by the worker: who keeps the steps of its jobs. Returns who did before."""
    global _keeper
    former, _keeper = _keeper, keeper
    return former


@overload
def step(
    name: str, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any, key: object, **kwargs: Any
) -> Coroutine[Any, Any, T]: ...
@overload
def step(name: str, function: Callable[..., T], /, *args: Any, key: object, **kwargs: Any) -> T: ...
@overload
def step(
    name: str, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
) -> Coroutine[Any, Any, T]: ...
@overload
def step(name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
def step(name: str, function: Callable[..., Any], /, *args: Any, key: object = None, **kwargs: Any) -> Any:
    """Run a part of the job once: call the function, and keep what it returns; later attempts only return that.

    The result goes through JSON and the function's return annotation, in the first attempt as well. If the function
    raises, nothing is kept. ``key`` tells the steps of one name apart, as in a loop. ``await`` the step of a coroutine
    function. Outside of a job, the function is called and nothing more.

    Raises ``ValueError`` for a name that is empty, begins with ``~``, has more than 191 bytes with its key, or was used
    in this attempt; for a result that is too large, or of too many steps (1 MiB and 10,000 for a job); ``TypeError``
    for a result that is not JSON; ``BadArguments`` for a kept one that does not fit the annotation.
    """
    full = _full_name(name, key)
    steps = _steps_here()
    if steps is None:
        return function(*args, **kwargs)
    call = partial(function, *args, **kwargs)
    if _is_coroutine_function(function):
        return steps.run_async(full, function, call)
    return steps.run(full, function, call)


class Cursor(Generic[T]):
    """The rows of ``cursor``, for one loop over them."""

    def __init__(self, name: str, rows_after: Callable[[Any], Any], key: Callable[[Any], Any] | None) -> None:
        self._name = name
        self._rows_after = rows_after
        self._key = key
        self._position = 0

    def __iter__(self) -> Iterator[T]:
        steps = _steps_here()
        for row in self._rows_after(self._begin(steps) if steps else None):
            yield row
            if steps:
                if values := steps.moves(self._name, self._place(row)):
                    steps.keep(values)
                steps.leave_if_asked()

    async def __aiter__(self) -> AsyncIterator[T]:
        steps = _steps_here()
        rows = self._rows_after(await steps.aside(partial(self._begin, steps)) if steps else None)
        if inspect.isawaitable(rows):
            rows = await rows
        async for row in _each(rows):
            yield row
            if steps:
                if values := steps.moves(self._name, self._place(row)):
                    await steps.aside(partial(steps.keep, values))
                steps.leave_if_asked()

    def _begin(self, steps: JobSteps) -> Any:
        """What the rows are to come after; ``None`` for all of them."""
        raw = steps.begin(CURSOR + self._name)
        if raw is None:
            return None
        hint = next(iter(hints_of(self._rows_after).values()), None) if self._key else int
        after = steps.value(self._name, raw, converter_of(hint), "rows_after takes")
        self._position = 0 if self._key else after
        return after

    def _place(self, row: T) -> bytes:
        self._position += 1
        raw = _json(f"the key of cursor {self._name!r}", self._key(row) if self._key else self._position)
        if len(raw) > MOST_PLACE:
            raise ValueError(f"cursor {self._name!r}: its key has {len(raw)} bytes as JSON, at most {MOST_PLACE}")
        return raw


@overload
def cursor(
    name: str, rows_after: Callable[[Any], AsyncIterable[T]], key: Callable[[T], object] | None = None
) -> AsyncIterable[T]: ...
@overload
def cursor(
    name: str, rows_after: Callable[[Any], Awaitable[Iterable[T]]], key: Callable[[T], object] | None = None
) -> AsyncIterable[T]: ...
@overload
def cursor(
    name: str, rows_after: Callable[[Any], Iterable[T]], key: Callable[[T], object] | None = None
) -> Cursor[T]: ...
def cursor(name: str, rows_after: Callable[[Any], Any], key: Callable[[Any], Any] | None = None) -> Any:
    """Go through rows, and in later attempts on behind the last row that was done.

    ``rows_after`` gets the ``key`` of that row, at first ``None``, and returns the rows behind it; without a ``key`` it
    gets how many rows were done, so that ``lambda done: rows[done:]`` is enough for a list. The key goes through JSON,
    with at most 256 bytes, and through the annotation of the argument. A row is done when the next one is asked for: a
    row whose body raises or breaks off comes again. Outside of a job, all rows come.

    Use ``async for`` if the rows come so. Raises ``ValueError`` as ``step`` does, and for too large a key.
    """
    _full_name(name, None)
    return Cursor[Any](name, rows_after, key)


class JobSteps:
    """The steps of one attempt at a job. Its threads may all use it."""

    def __init__(self, job: Current, keeper: StepKeeper) -> None:
        #: weak, as the job has its steps: what it had in memory must not wait for the garbage collection
        self._job: Current = weakref.proxy(job)
        self._keeper = keeper
        #: held for what is known here; and, around it, for calls of the store, which no event loop waits for
        self._changes, self._asks = threading.Lock(), threading.Lock()
        #: what is kept, by name, once it has been read; and how many bytes that is
        self._kept: dict[str, bytes] = {}
        self._bytes = 0
        self._is_read = False
        self._asked: set[str] = set()
        self._has_progress = self._is_leaving = False
        #: the name and the place of the cursor that has moved last, unless the store has it
        self._moved: tuple[str, bytes] | None = None
        self._keep_at = 0.0

    @property
    def end(self) -> StepsEnd:
        """What the end of the attempt's lease does with what is kept."""
        return StepsEnd(self._job.id, place=self._moved)

    @property
    def unused(self) -> tuple[str, ...]:
        """The names that are kept and that this attempt has not asked for."""
        return tuple(sorted(name.removeprefix(CURSOR) for name in self._kept.keys() - self._asked))

    def run(self, name: str, function: Callable[..., Any], call: Callable[[], Any]) -> Any:
        """The result of this step."""
        raw = self.begin(name)
        if raw is None:
            raw = self._result(name, call())
            self.keep({name: raw})
        self.leave_if_asked()
        return self._returned(name, raw, function)

    async def run_async(self, name: str, function: Callable[..., Any], call: Callable[[], Any]) -> Any:
        """As ``run``, for a coroutine function."""
        raw = await self.aside(partial(self.begin, name))
        if raw is None:
            raw = self._result(name, await call())
            await self.aside(partial(self.keep, {name: raw}))
        self.leave_if_asked()
        return self._returned(name, raw, function)

    async def aside(self, act: Callable[[], T]) -> T:
        """Do what asks the store, in a thread if other jobs share the loop."""
        return await asyncio.to_thread(act) if self._keeper.is_shared else act()

    def begin(self, name: str) -> bytes | None:
        """What is kept under this name, which no other step of this attempt may have; ``None`` if nothing is.

        Raises ``Leaving`` if the attempt was told to leave before, and has gone on.
        """
        if self._is_leaving:
            raise Leaving
        with self._asks:
            if not self._is_read:
                self._read()
        with self._changes:
            if name in self._asked:
                raise ValueError(f"{name!r} is used twice in this attempt: use key= to tell the steps of a loop apart")
            self._asked.add(name)
            if name not in self._kept and len(self._kept) >= MOST_KEPT:
                raise ValueError(f"{name!r}: the job has {MOST_KEPT:,} steps and cursors, and may have no more")
            return self._kept.get(name)

    def _read(self) -> None:
        self._kept = self._keeper.of_job(self._job)
        self._bytes = sum(map(len, self._kept)) + sum(map(len, self._kept.values()))
        self._is_read = True
        self._keeper.show("", b"")

    def keep(self, values: Mapping[str, bytes]) -> None:
        """Keep these values, and the place of a cursor that has moved."""
        with self._asks:
            with self._changes:
                moved = self._moved
                values = {**values, **dict([moved] if moved else [])}  # which may be further by now
                more = self._more_bytes(values)
            self._keeper.keep(self._job, values)
            with self._changes:
                self._kept |= values
                self._bytes += more
                self._has_progress = True
                self._keep_at = time.monotonic() + _PLACE_KEPT
                if moved and self._moved is moved:
                    self._moved = None
                    self._keeper.show(*moved)

    def _more_bytes(self, values: Mapping[str, bytes]) -> int:
        """How many more bytes are kept with these. Raises ``ValueError`` if that is too much."""
        more = sum(len(raw) - len(self._kept.get(name, b"")) for name, raw in values.items())
        more += sum(len(name.encode()) for name in values if name not in self._kept)
        if self._bytes + more > MOST_BYTES:
            raise ValueError(f"{', '.join(map(repr, values))}: the results of a job's steps have at most 1 MiB")
        return more

    def moves(self, cursor: str, place: bytes) -> Mapping[str, bytes] | None:
        """A row of this cursor is done: show its place; returns what the store is to get, if that is due."""
        name = CURSOR + cursor
        with self._changes:
            former, self._moved, self._has_progress = self._moved, (name, place), True
            if former and former[0] != name:  # the board has room for one, and shows it until the store has it
                return dict([former, self._moved])
            self._keeper.show(name, place)
            self._keep_at = self._keep_at or time.monotonic() + _PLACE_KEPT
            return dict([self._moved]) if time.monotonic() >= self._keep_at else None

    def leave_if_asked(self) -> None:
        """At the end of a step or a row: raise ``Leaving`` if the job is to leave its worker."""
        if self._is_leaving or self._keeper.must_leave(self._job, has_progress=self._has_progress):
            self._is_leaving = True
            raise Leaving

    def _result(self, name: str, value: object) -> bytes:
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise TypeError(f"step {name!r}: its function returns what is awaited: give it a coroutine function")
        return _json(f"the result of step {name!r}", value)

    def _returned(self, name: str, raw: bytes, function: Callable[..., Any]) -> Any:
        hint = function if isinstance(function, type) else hints_of(function).get("return")
        return self.value(name, raw, converter_of(hint), f"{getattr(function, '__qualname__', function)} returns")

    def value(self, name: str, raw: bytes, convert: Converter | None, whose: str) -> Any:
        """The kept value, converted; ``whose``: who says what it should be. Raises ``BadArguments``."""
        try:
            return within("what is kept", convert, json.loads(raw))
        except (Unreadable, ValueError) as problem:
            remedy = f"`queuepool step forget {self._job.id} {name}` lets it run again"
            raise BadArguments(f"step {name!r}", f"{problem}, which {whose}: {remedy}") from problem


def _steps_here() -> JobSteps | None:
    """The steps of the job that runs here; ``None`` outside of a worker's job."""
    job = running()
    if job is None or job.lease is None or _keeper is None:
        return None
    with _begins:
        found = job.steps = job.steps or JobSteps(job, _keeper)
        assert isinstance(found, JobSteps)
        return found


def _full_name(name: str, key: object) -> str:
    """The name under which the step is kept. Raises ``ValueError``."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a step needs a name, not {name!r}")
    if name.startswith(CURSOR):
        raise ValueError(f"the name {name!r} begins with {CURSOR}, as those of cursors do where they are kept")
    full = name if key is None else f"{name}:{key}"
    try:
        size = len(full.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the name {full!r} cannot be written as UTF-8") from None
    if size > MOST_NAME:
        raise ValueError(f"the name {full[:40]!r}... has {size} bytes with its key, at most {MOST_NAME}")
    return full


def _json(what: str, value: object) -> bytes:
    """The value as JSON, in ASCII. Raises ``TypeError`` and ``ValueError``."""
    try:
        return json.dumps(value, allow_nan=False, default=as_json, separators=(",", ":")).encode()
    except TypeError as error:
        raise TypeError(f"{what} cannot be kept: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} cannot be kept: {error}") from error


def _is_coroutine_function(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _each(rows: Any) -> AsyncIterator[Any]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
