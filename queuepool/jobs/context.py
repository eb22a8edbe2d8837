"""Context: values that follow a request, or a job, into the jobs that it dispatches, in Python and in Laravel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, NamedTuple
from weakref import ref

from queuepool.jobs.current_job import Current, running
from queuepool.payload.context import MOST_LOGGED, Texts, values_of
from queuepool.payload.php_values import PhpDataRefused, PhpValue, serialize
from queuepool.payload.unique_locks import without_lock


class _Own(NamedTuple):
    """A context to which something was added."""

    #: the running job at that time, whose end it does not outlive; ``None`` outside of jobs
    job: ref[Current] | None
    texts: Texts | None
    #: whether it was kept for one push, which may be made after the end of that job
    is_kept: bool = False

    def is_of(self, job: Current | None) -> bool:
        if self.is_kept:
            return True
        return job is None if self.job is None else job is not None and self.job() is job


_own: ContextVar[_Own | None] = ContextVar("queuepool_context", default=None)


class JobContext:
    """The context of the running job; outside of jobs that of this thread or task (``contextvars``)."""

    def add(self, name: str, value: PhpValue, *, hidden: bool = False) -> None:
        """Give this value to every job that is dispatched from now on; ``hidden`` keeps it out of logs.

        Raises ``PhpDataRefused`` (a ``ValueError``) for a value that PHP cannot hold.
        """
        _own.set(_with("hidden" if hidden else "data", {name: value}))

    @contextmanager
    def scope(self, **values: PhpValue) -> Iterator[None]:
        """Add these values within the block only. Raises as ``add`` does."""
        before = _own.set(_with("data", values))
        try:
            yield
        finally:
            _own.reset(before)

    def get(self, name: str, default: Any = None) -> Any:
        """One value, hidden or not."""
        return {**self.hidden, **self.data}.get(name, default)

    @property
    def data(self) -> dict[str, PhpValue]:
        """The values that are logged, including those that the running job came with."""
        return values_of(texts(), "data")

    @property
    def hidden(self) -> dict[str, PhpValue]:
        """The values that are not logged."""
        return values_of(texts(), "hidden")


context = JobContext()


def texts() -> Texts | None:
    """The context that a job dispatched now would get; ``None`` if there is none."""
    own, job = _own.get(), running()
    if own is not None and own.is_of(job):
        return own.texts
    if job is None or job.payload.context is None:
        return None
    return without_lock(job.payload.context)


def kept_context() -> Context:
    """A copy of the caller's ``contextvars`` in which ``texts`` always returns what it returns now."""
    found, copied = texts(), copy_context()
    copied.run(_own.set, _Own(None, found, is_kept=True))
    return copied


def running_data() -> Mapping[str, PhpValue]:
    """The part of the running job's context that its log lines show; empty between jobs."""
    return values_of(texts(), "data", most=MOST_LOGGED + 1) if running() else {}


def _with(part: str, values: Mapping[str, PhpValue]) -> _Own:
    job, made = running(), dict(texts() or {"data": {}, "hidden": {}})
    made[part] = made[part] | {name: _serialized(name, value) for name, value in values.items()}
    return _Own(ref(job) if job else None, made)


def _serialized(name: str, value: PhpValue) -> str:
    if not isinstance(name, str):
        raise PhpDataRefused(f"context: the name {name!r} is not a string")
    try:
        serialize(name)  # the name goes into the same payload
        return serialize(value)
    except PhpDataRefused as error:
        raise PhpDataRefused(f"context {name!r}: {error.reason}") from None
