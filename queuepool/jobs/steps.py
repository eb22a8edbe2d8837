"""Steps and cursors: what a job has done is kept with it, and its next attempts go on behind it.

A step runs once. Its result is kept as JSON, and its caller gets what that says, in the first attempt too. A cursor
goes on behind the last row that was done. At the end of a step or a row the job leaves by itself if its worker is to
stop; it goes back to the head of its queue, and no try is used up.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, overload

from queuepool.jobs.attempt_steps import JobSteps, steps_here
from queuepool.jobs.kept_values import full_name, place_of, position, row_key

P = ParamSpec("P")
T = TypeVar("T")


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
    full = full_name(name, key)
    steps = steps_here()
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
        steps = steps_here()
        if steps is None:
            yield from self._plain(self._rows_after(None))
            return
        steps.must_not_block(f"cursor {self._name!r}", "go through it with `async for`")
        steps.read()
        for row in self._plain(self._rows_after(self._begin(steps))):
            place = self._place(row)
            with steps.part(is_step=False):
                yield row
            if steps.moves(self._name, place):
                steps.keep({})
            steps.leave_if_asked()

    async def __aiter__(self) -> AsyncIterator[T]:
        steps = steps_here()
        if steps is None:
            async for row in self._each(self._rows_after(None)):
                yield row
            return
        await steps.read_aside()
        async for row in self._each(self._rows_after(self._begin(steps))):
            place = self._place(row)
            with await steps.part_aside(is_step=False):
                yield row
            if steps.moves(self._name, place):
                await steps.aside(partial(steps.keep, {}))
            steps.leave_if_asked()

    def _begin(self, steps: JobSteps) -> Any:
        """What the rows are to come after; ``None`` for all of them."""
        raw = steps.begin_cursor(self._name)
        if raw is None:
            return None
        if self._key:
            return row_key(steps.job_id, self._name, raw, self._rows_after)
        self._position = position(steps.job_id, self._name, raw)
        return self._position

    def _place(self, row: T) -> bytes:
        self._position += 1
        return place_of(self._name, self._key(row) if self._key else self._position)

    def _plain(self, rows: Any) -> Iterable[T]:
        if inspect.isawaitable(rows) or isinstance(rows, AsyncIterable):
            if inspect.iscoroutine(rows):
                rows.close()
            raise TypeError(f"the rows of cursor {self._name!r} come asynchronously: use `async for`")
        return rows  # type: ignore[no-any-return]

    async def _each(self, rows: Any) -> AsyncIterator[T]:
        if inspect.isawaitable(rows):
            rows = await rows
        if isinstance(rows, AsyncIterable):
            async for row in rows:
                yield row
        else:
            for row in rows:
                yield row


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
    full_name(name, None)
    return Cursor[Any](name, rows_after, key)


def _is_coroutine_function(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
