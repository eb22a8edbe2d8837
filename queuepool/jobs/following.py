"""Following jobs by their ids, as a dispatch returns them: what is known of a tracked one, and waiting for its end."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from queuepool.errors import NotTracked, QueuepoolError, StoreDown, StoreError
from queuepool.stores.values import MAX_STATE

if TYPE_CHECKING:
    from queuepool.stores.factory import Stores

#: seconds between looks while waiting: first, and at most
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25
#: seconds for which a wait outlasts a store that does not answer
_LONGEST_BLIP = 60.0
#: the states of jobs that are over
OVER = frozenset(("done", "failed", "cancelled"))


class Follows(Protocol):
    """The part of a ``Queue`` that follows jobs."""

    def job(self, job_id: str) -> JobState | None: ...

    def wait(self, job_id: str, timeout: float | None = None) -> JobState: ...

    async def await_job(self, job_id: str, timeout: float | None = None) -> JobState: ...


class JobId(str):
    """A job's id, which also knows its queue, so that a tracked job can be followed."""

    __slots__ = ("_queue",)
    _queue: Follows

    def __new__(cls, text: str, queue: Follows) -> JobId:
        made = super().__new__(cls, text)
        made._queue = queue
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """A copy, or a pickle for another process, is a plain string."""
        return str, (str(self),)

    def job(self) -> JobState | None:
        """As ``Queue.job``."""
        return self._queue.job(self)

    def wait(self, timeout: float | None = None) -> JobState:
        """As ``Queue.wait``."""
        return self._queue.wait(self, timeout)

    async def await_job(self, timeout: float | None = None) -> JobState:
        """As ``Queue.await_job``."""
        return await self._queue.await_job(self, timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """What was known of a job when it was asked for. ``None`` or empty: unknown, or not yet.

    ``state`` is ``queued``, ``delayed``, ``running``, ``released`` (waits for its next try), ``done``, ``failed`` or
    ``cancelled`` (skipped: its batch was cancelled, or it had expired).
    """

    id: str
    state: str
    name: str = ""
    queue: str = ""
    #: how often it was started
    attempts: int = 0
    #: when it was pushed, and when this state began
    pushed: datetime | None = None
    since: datetime | None = None
    #: when the last attempt began
    began: datetime | None = None
    #: when a delayed or released job becomes ready
    due: datetime | None = None
    #: where it runs or has run
    host: str = ""
    worker: int | None = None
    pid: int | None = None
    #: how far it is, from 0 to 1
    progress: float | None = None
    note: str = ""
    #: what the handler returned, as JSON holds it
    result: Any = None
    #: why the result is not kept
    result_problem: str = ""
    #: why it failed, was released or was cancelled
    error: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it will not run again by itself."""
        return self.state in OVER


def found(stores: Stores, job_id: str) -> JobState | None:
    """What is known of the job; ``None`` if it is not tracked."""
    text = stores.values.state(job_id) if job_id else None
    if text is None:
        return None
    try:
        return _state_of(job_id, _facts_in(text), stores.queue.now)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise StoreError(f"the stored state of job {job_id} cannot be read: {error}") from error


def _facts_in(text: bytes) -> dict[str, Any]:
    """The known facts in a record; a later version may have written others."""
    if len(text) >= MAX_STATE:
        raise ValueError(f"it has {MAX_STATE} bytes or more")
    return {key: value for key, value in json.loads(text).items() if key in _FACTS}


def ended(look: Callable[[], JobState | None], job_id: str, timeout: float | None) -> JobState:
    """What is known of the job once it is over. Raises as ``Queue.wait`` does."""
    return Wait[JobState](f"job {job_id}", NotTracked(job_id), timeout).until_over(look)


async def aended(look: Callable[[], Awaitable[JobState | None]], job_id: str, timeout: float | None) -> JobState:
    """``ended``, awaited."""
    return await Wait[JobState](f"job {job_id}", NotTracked(job_id), timeout).auntil_over(look)


class IsOver(Protocol):
    """What is known of a job or a flow."""

    @property
    def state(self) -> str: ...

    @property
    def is_over(self) -> bool: ...


S = TypeVar("S", bound=IsOver)


class Wait(Generic[S]):
    """A wait for the end of ``what``; ``timeout`` in seconds, ``None`` = no limit; ``gone`` is raised for what is not
    known.
    """

    def __init__(self, what: str, gone: QueuepoolError, timeout: float | None) -> None:
        self._what = what
        self._gone = gone
        self._timeout = math.inf if timeout is None else timeout
        self._until = time.monotonic() + self._timeout
        self._pause = _FIRST_PAUSE
        #: when the store last answered; ``None`` = it never has
        self._seen: float | None = None

    def until_over(self, look: Callable[[], S | None]) -> S:
        """Look until it is over. Raises ``TimeoutError``."""
        while True:
            with self._outlasting_a_blip():
                if (state := self._checked(look())).is_over:
                    return state
            time.sleep(self._next_pause())

    async def auntil_over(self, look: Callable[[], Awaitable[S | None]]) -> S:
        """``until_over``, awaited."""
        from asyncio import sleep  # imported here: most programs await no job

        while True:
            with self._outlasting_a_blip():
                if (state := self._checked(await look())).is_over:
                    return state
            await sleep(self._next_pause())

    @contextmanager
    def _outlasting_a_blip(self) -> Iterator[None]:
        """Wraps a look: a store that has answered before may be down for a while."""
        try:
            yield
        except StoreDown:
            if self._seen is None or time.monotonic() >= min(self._seen + _LONGEST_BLIP, self._until):
                raise

    def _checked(self, state: S | None) -> S:
        self._seen = time.monotonic()
        if state is None:
            raise self._gone
        if not state.is_over and time.monotonic() >= self._until:
            raise TimeoutError(f"{self._what} is {state.state} after {self._timeout:g} s")
        return state

    def _next_pause(self) -> float:
        """Seconds until the next look."""
        pause, self._pause = self._pause, min(self._pause * 1.5, _LONGEST_PAUSE)
        return max(min(pause, self._until - time.monotonic()), 0.0)


_FACTS = frozenset(field.name for field in fields(JobState)) - {"id"} | {"until"}


def _state_of(job_id: str, facts: dict[str, Any], now: Callable[[], float]) -> JobState:
    """The state that the facts describe. Raises what Python raises for malformed facts."""
    if not isinstance(facts["state"], str):
        raise TypeError("it names no state")
    until = facts.pop("until", None)
    if until is not None and until < now():  # its worker or its whole host is gone
        facts = {**facts, "state": "queued", "worker": None, "pid": None}
    if facts["state"] == "delayed" and facts.get("due", 0.0) <= time.time():
        facts["state"] = "queued"
    times = {key: moment_of(facts.get(key)) for key in ("pushed", "since", "began", "due")}
    result = json.loads(facts["result"]) if "result" in facts else None
    return JobState(id=job_id, **{**facts, **times, "result": result})


def moment_of(seconds: object) -> datetime | None:
    """``None`` for a time that is invalid, as a foreign payload's may be."""
    try:
        return datetime.fromtimestamp(float(seconds), UTC) if isinstance(seconds, (int, float)) else None
    except (ValueError, OverflowError, OSError):
        return None
