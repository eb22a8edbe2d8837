"""The threads in which pages are built and stores are read: an event loop must not wait for either."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
#: pages that are built at once, stores that are read, actions that are carried out, and passwords that are checked
_PAGES, _READERS, _ACTS, _CHECKS = 8, 8, 8, 2
#: a value is renewed after so many times the time that this takes, so that it costs its store a twentieth at most; and
#: seconds after which it is renewed all the same
_SPARING, _LONGEST_REST = 20.0, 60.0
#: seconds after which a reading that is under way is said to be late
_LATE = 2.0


class WebThreads:
    """A few threads for each kind of work: no kind waits for another. They end with the process."""

    def __init__(self) -> None:
        self.pages = ThreadPoolExecutor(_PAGES, "queuepool-page")
        self.readers = ThreadPoolExecutor(_READERS, "queuepool-reader")
        self.acts = ThreadPoolExecutor(_ACTS, "queuepool-act")
        self.checks = ThreadPoolExecutor(_CHECKS, "queuepool-check")

    async def page(self, build: Callable[[], T]) -> T:
        """What ``build`` returns or raises."""
        return await asyncio.wrap_future(self.pages.submit(build))

    async def act(self, do: Callable[[], T]) -> T:
        """As ``page``, for what may take as long as a job that is being ended."""
        return await asyncio.wrap_future(self.acts.submit(do))

    async def check(self, verify: Callable[[], T]) -> T:
        """As ``page``, for what takes the processor's time."""
        return await asyncio.wrap_future(self.checks.submit(verify))

    def close(self) -> None:
        """Begin nothing more; does not wait."""
        for pool in (self.pages, self.readers, self.acts, self.checks):
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T]):
    """What was read last, ``age`` seconds ago; ``problem``: why it could not be read again, empty if it could."""

    value: T | None = None
    age: float = 0.0
    problem: str = ""


class Fresh(Generic[T]):
    """A value that is read at most every ``lasts`` seconds, however many ask for it, and by one thread at a time.

    ``read`` may raise one of ``errors``: then the last value stays, with the problem.
    """

    def __init__(
        self, threads: WebThreads, read: Callable[[], T], lasts: float, errors: tuple[type[Exception], ...]
    ) -> None:
        self._threads = threads
        self._read = read
        self._lasts = lasts
        self._errors = errors
        self._lock = threading.Lock()
        self._reading: Future[None] | None = None
        self._due = 0.0
        self._began = 0.0
        self._is_outdated = False
        self._value: T | None = None
        self._read_at = 0.0
        self._problem = ""

    def is_known(self, within: float) -> bool:
        """Whether it was read within these seconds, or is known not to be readable."""
        was_read = self._value is not None and time.monotonic() - self._read_at < within
        return was_read or bool(self._problem)

    def get(self, patience: float) -> Snapshot[T]:
        """The value; if it is old, waits up to ``patience`` seconds for a new one. Blocks no longer than that."""
        with self._lock:
            if self._reading is None and time.monotonic() >= self._due:
                self._reading = self._threads.readers.submit(self._renew)
                self._began = time.monotonic()
            reading = self._reading
        if reading and wait([reading], patience).done:
            reading.result()  # raises what is none of the errors
        with self._lock:
            now = time.monotonic()
            age, waited = now - self._read_at if self._value is not None else 0.0, now - self._began
            late = f"no answer for {waited:.0f} s" if reading and not reading.done() and waited > _LATE else ""
            return Snapshot(self._value, age, self._problem or late)

    def expire(self) -> None:
        """Have it read again when it is asked for next: something was changed."""
        with self._lock:
            self._due, self._is_outdated = 0.0, True

    def _renew(self) -> None:
        with self._lock:
            self._is_outdated = False
        began, found, problem = time.monotonic(), None, ""
        try:
            found = self._read()
        except self._errors as error:
            problem = str(error)
        finally:
            ended = time.monotonic()
            with self._lock:
                if found is not None:
                    self._value, self._read_at = found, ended
                self._problem = problem
                # One that cannot be read costs its store nothing, and may be back at any time.
                rest = 0.0 if problem else min(_SPARING * (ended - began), _LONGEST_REST)
                self._due = 0.0 if self._is_outdated else ended + max(self._lasts, rest)
                self._reading = None
