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
#: at once: pages that are built of what is known, and pages that ask a store
_PAGES, _LISTS = 8, 8
#: a value is renewed after so many times the time that this takes, so that it costs its store a twentieth at most; and
#: seconds after which it is renewed all the same; and after which what could not be read is tried again
_SPARING, _LONGEST_REST, _TRIED_AGAIN = 20.0, 60.0, 1.0
#: seconds after which a value that nobody has asked for is as good as none, and a read that has not ended hangs
_LATE = 2.0


class WebThreads:
    """A few threads for each kind of work: no kind waits for another. They end with the process.

    ``acts``: those for actions.
    """

    def __init__(self, acts: int) -> None:
        self.pages = ThreadPoolExecutor(_PAGES, "queuepool-page")
        self.lists = ThreadPoolExecutor(_LISTS, "queuepool-list")
        self.acts = ThreadPoolExecutor(acts, "queuepool-act")
        self.looks = ThreadPoolExecutor(1, "queuepool-look")
        self.checks = ThreadPoolExecutor(1, "queuepool-check")

    async def page(self, build: Callable[[], T]) -> T:
        """What ``build`` returns or raises."""
        return await asyncio.wrap_future(self.pages.submit(build))

    async def list(self, build: Callable[[], T]) -> T:
        """As ``page``, for what asks a store, which may keep it waiting."""
        return await asyncio.wrap_future(self.lists.submit(build))

    async def look(self, find: Callable[[], T]) -> T:
        """As ``page``, for who is known: this waits for no page and no password."""
        return await asyncio.wrap_future(self.looks.submit(find))

    async def check(self, verify: Callable[[], T]) -> T:
        """As ``page``, for passwords, one at a time: each takes the processor's time."""
        return await asyncio.wrap_future(self.checks.submit(verify))

    def join_acts(self) -> None:
        """After ``close``: wait for the actions under way."""
        self.acts.shutdown(wait=True)

    def close(self) -> None:
        """Begin nothing more; does not wait."""
        for pool in (self.pages, self.lists, self.acts, self.looks, self.checks):
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T]):
    """What was read last, ``age`` seconds ago; ``problem``: why it could not be read again, empty if it could."""

    value: T | None = None
    age: float = 0.0
    problem: str = ""


class Fresh(Generic[T]):
    """A value that is read at most every ``lasts`` seconds, however many ask for it, by one of ``readers`` at a time.

    ``read`` may raise one of ``errors``: then the last value stays, with the problem.
    """

    def __init__(
        self, readers: ThreadPoolExecutor, read: Callable[[], T], lasts: float, errors: tuple[type[Exception], ...]
    ) -> None:
        self._readers = readers
        self._read = read
        self._lasts = lasts
        self._errors = errors
        self._lock = threading.Lock()
        self._reading: Future[None] | None = None
        self._asked_at = 0.0
        self._due = self._ended = 0.0
        self._trusted_until = 0.0
        self._is_outdated = False
        self._value: T | None = None
        self._read_at = 0.0
        self._problem = ""

    @property
    def is_known(self) -> bool:
        """Whether it was read of late, or is known not to be readable: then nobody needs to wait for it."""
        with self._lock:
            is_lately = self._value is not None and time.monotonic() < self._due + _LATE
            return is_lately or bool(self._problem) or self._hangs()

    def get(self, patience: float) -> Snapshot[T]:
        """The value; if it is old, waits up to ``patience`` seconds for a new one. Blocks no longer than that."""
        with self._lock:
            if self._reading is None and time.monotonic() >= self._due:
                self._asked_at = time.monotonic()
                self._reading = self._readers.submit(self._renew)
            reading = self._reading
        if reading and wait([reading], patience).done:
            reading.result()  # raises what is none of the errors
        with self._lock:
            age = time.monotonic() - self._read_at if self._value is not None else 0.0
            late = f"no answer for {time.monotonic() - self._asked_at:.0f} s" if self._hangs() else ""
            return Snapshot(self._value, age, self._problem or late)

    def expire(self) -> None:
        """Have it read again when it is asked for next: something was changed."""
        with self._lock:
            self._due, self._is_outdated = 0.0, True

    def doubt(self) -> None:
        """Have it read again as soon as it may be, however long that takes.

        Once in ``_LONGEST_REST`` seconds: searches that take too long, again and again, must not keep the store busy
        with other reads.
        """
        with self._lock:
            now, soon = time.monotonic(), self._ended + self._lasts
            if soon < self._due and now >= self._trusted_until:
                self._due, self._trusted_until = soon, now + _LONGEST_REST

    def _hangs(self) -> bool:
        return self._reading is not None and time.monotonic() > self._asked_at + _LATE

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
                self._ended = ended
                if found is not None:
                    self._value, self._read_at = found, ended
                self._problem = problem
                # A store that cannot be read is not burdened by that, and may be back at any time.
                rest = max(self._lasts, min(_SPARING * (ended - began), _LONGEST_REST))
                rest = min(self._lasts, _TRIED_AGAIN) if problem else rest
                self._due = 0.0 if self._is_outdated else ended + rest
                self._reading = None
