"""A queue's blocking calls in a few threads, so that an event loop goes on meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from queuepool.errors import StoreDown
from queuepool.jobs.context import kept_context
from queuepool.unix.originals import has_threads

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
#: threads of one queue, and so connections; more would make the loop wait for the interpreter's lock
MOST = 4
#: seconds after which a thread without work ends
_IDLE = 5.0
#: the threads' name
_NAME = "queuepool push"
#: seconds that a thread computes at most before it pauses, and how long the pause is
_STRETCH, _PAUSE = 0.0005, 0.0001
_CLOSED = "the queue was closed before this push began: nothing was pushed"


def with_pauses(items: Sequence[T]) -> Iterable[T]:
    """The items; in one of these threads with short pauses, else the interpreter's lock would delay the loop by 5 ms.

    Releasing the lock is not enough: without a pause, the thread takes it back before the loop's thread wakes.
    """
    return _paused(items) if len(items) > 1 and threading.current_thread().name == _NAME else items


def _paused(items: Iterable[T]) -> Iterator[T]:
    pause_at = time.monotonic() + _STRETCH
    for item in items:
        yield item
        if time.monotonic() > pause_at:
            time.sleep(_PAUSE)
            pause_at = time.monotonic() + _STRETCH


class _ThreadCall(NamedTuple):
    """A call, and the future that waits for it."""

    context: Context
    call: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]

    def answer(self, result: object, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop was closed in the meantime: nothing waits any more
            self.loop.call_soon_threadsafe(_settle, self.future, result, error)


class Threads:
    """At most ``MOST`` threads, started when there is work. As daemons they do not delay the end of the process.

    A forked process starts its own.
    """

    def __init__(self) -> None:
        self._begin()

    async def run(self, call: Callable[[], T]) -> T:
        """Await a blocking call, made with the caller's context.

        If this is cancelled, a call that has begun runs to its end; one that has not is dropped. Where gevent or
        eventlet has replaced threads, the call is made here and now: no thread would run while the loop waits.
        """
        from asyncio import get_running_loop  # imported here: most programs push from no coroutine

        if not has_threads():
            return kept_context().run(call)
        if self._pid != os.getpid():
            self._begin()
        loop = get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._crew.add(_ThreadCall(kept_context(), call, loop, future))
        return await future

    def close(self) -> None:
        """End the threads, without waiting for them; calls that have not begun raise ``StoreDown``."""
        former, is_ours = self._crew, self._pid == os.getpid()
        self._begin()
        if is_ours:
            former.close()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._crew = _Crew()


class _Crew:
    """What the threads share; it does not keep the queue alive."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[_ThreadCall | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._size = 0
        self._is_closed = False

    def add(self, call: _ThreadCall) -> None:
        """Have a thread make the call, a new one if fewer than ``MOST`` run. Raises ``RuntimeError`` if it cannot."""
        with self._lock:
            if self._is_closed:  # by another thread, just now
                raise StoreDown(_CLOSED)
            if self._size < MOST:
                threading.Thread(target=self._work, name=_NAME, daemon=True).start()
                self._size += 1
            self._waiting.put(call)

    def close(self) -> None:
        """Answer the calls that wait, and end the threads."""
        with self._lock:
            self._is_closed = True
        with suppress(Empty):
            while True:
                if call := self._waiting.get_nowait():
                    call.answer(None, StoreDown(_CLOSED))
        for _ in range(self._size):
            self._waiting.put(None)

    def _work(self) -> None:
        while self._take():
            pass

    def _take(self) -> bool:
        """Make one call; ``False`` when this thread is to end."""
        try:
            call = self._waiting.get(timeout=_IDLE)
        except Empty:
            return self._goes_on()
        if call is not None and not call.future.cancelled():
            call.answer(*_outcome(partial(call.context.run, call.call)))
        return call is not None

    def _goes_on(self) -> bool:
        with self._lock:  # a call may have come just now
            self._size -= self._waiting.empty()
            return not self._waiting.empty()


def _outcome(call: Callable[[], object]) -> tuple[object, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the coroutine that waits
        return None, error


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
