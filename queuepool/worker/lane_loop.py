"""The event loop of a worker that runs jobs side by side, in a thread of its own.

The main thread does what it does in every worker: signals, the store, the gate, the limits. So a job that blocks the
loop does not keep another from being settled, and a store that is away stops no job. The two threads meet in two
places: the main thread hands over attempts (``begin``), and takes those that are over (``ended``) when the bell rings.

Another thread waits for new jobs (``Waiter``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue

from queuepool.errors import StoreError
from queuepool.stores.contract import QueueStore
from queuepool.unix.exit_codes import BROKEN
from queuepool.unix.originals import is_readable, sleep, start_thread
from queuepool.unix.signals import leave_signals_to_the_main_thread
from queuepool.worker.job_attempt import JobAttempt

#: bytes of the thread's stack: some C libraries give a thread far less than the main thread has
_STACK = 16 * 1024 * 1024
_log = logging.getLogger("queuepool")
#: seconds until the next wait if the store is away; the main thread meets that too, and reports it
_AWAY = 0.05


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """An event loop of this kind, whatever policy user code has set."""
    if kind == "uvloop":
        import uvloop  # imported here: few pools ask for it

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.SelectorEventLoop()


class Bell:
    """Wakes the main thread. A signal's handler may raise out of ``wait``, as nothing is locked."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_awaited = False

    def ring(self) -> None:
        """From any thread: end the present wait."""
        if self._is_awaited:
            os.eventfd_write(self._fd, 1)

    def wait(self, timeout: float, is_due: Callable[[], object]) -> None:
        """Wait until it rings, or until ``timeout`` seconds are over; not at all if something ``is_due`` by now."""
        self._is_awaited = True  # written first, then checked: what comes after the check rings
        try:
            if not is_due() and is_readable(self._fd, timeout):
                with suppress(BlockingIOError):
                    os.eventfd_read(self._fd)
        finally:
            self._is_awaited = False


class LaneLoop:
    """The loop and its thread. Methods are for the main thread, except where noted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bell: Bell) -> None:
        self.loop = loop
        self.bell = bell
        #: attempts that are over, in the order in which they ended; each was handed over by ``begin``
        self.ended: deque[JobAttempt] = deque()

    def start(self, runs_in: Callable[[int], object]) -> None:
        """Start the thread, which calls ``runs_in`` with its identity; its loop runs until the process ends."""
        former = threading.stack_size(_STACK)
        threading.Thread(target=self._run, args=[runs_in], name="queuepool jobs", daemon=True).start()
        threading.stack_size(former)

    def begin(self, attempts: Sequence[JobAttempt], perform: Callable[[JobAttempt], None]) -> None:
        """Have the loop call ``perform`` with each of these attempts, in their order."""
        self.loop.call_soon_threadsafe(self._begin, attempts, perform)

    def has_ended(self, attempt: JobAttempt) -> None:
        """On the loop: nothing of this attempt runs any more."""
        self.ended.append(attempt)
        self.bell.ring()

    def _begin(self, attempts: Sequence[JobAttempt], perform: Callable[[JobAttempt], None]) -> None:
        for attempt in attempts:
            perform(attempt)

    def _run(self, runs_in: Callable[[int], object]) -> None:
        # No signal is blocked: what jobs start would inherit that, and a fault would leave no stacks. The kernel
        # delivers a process's signals to its main thread, unless that one has others to handle, and so wakes up anyway.
        runs_in(threading.get_ident())
        asyncio.set_event_loop(self.loop)
        try:
            while not self.loop.is_closed():
                try:
                    self.loop.run_forever()  # until a job stops it
                except (SystemExit, KeyboardInterrupt) as error:  # of a callback: a job's own has been caught
                    _log.warning("a callback on the event loop raised %r", error)
        except BaseException:  # noqa: BLE001 - whatever it is, no job goes on
            _log.exception("the event loop broke")  # a job has closed its descriptors, say
        finally:
            os._exit(BROKEN)  # the steward settles what the board shows


class Waiter:
    """Waits for jobs at the store, in a thread of its own: the main thread has other requests to make meanwhile."""

    def __init__(self, store: QueueStore, bell: Bell) -> None:
        self._store = store
        self._bell = bell
        #: the requests, each with whether it is a wait
        self._asks: SimpleQueue[tuple[Callable[[], object], bool]] = SimpleQueue()
        #: the queues of the wait that runs, or whose end the main thread has not yet seen
        self._queues: Sequence[str] = ()
        #: whether that wait has returned; a ``pass_on`` is not a wait, and must not delay the next one
        self._has_returned = True
        #: what ended the thread
        self._broken: BaseException | None = None
        start_thread(self._run, ())

    @property
    def is_over(self) -> bool:
        """Whether a wait is over whose end the main thread has not yet seen."""
        return self._has_returned and bool(self._queues)

    def ended(self) -> Sequence[str]:
        """The queues of the wait that is over, reported once; none otherwise."""
        found: Sequence[str] = ()
        if self._has_returned:
            found, self._queues = self._queues, ()
        return found

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        """Begin to wait, for at most ``timeout`` seconds, unless it still waits. Raises what has ended the thread."""
        if self._has_returned and not self._queues:
            self._queues, self._has_returned = queues, False
            self._ask(lambda: self._store.wait(queues, timeout), is_wait=True)

    def pass_on(self, queues: Sequence[str]) -> None:
        """Have another worker woken instead: the wait may have taken the token of a job that we will not reserve."""
        self._ask(lambda: self._store.stage(queues), is_wait=False)

    def _ask(self, ask: Callable[[], object], *, is_wait: bool) -> None:
        if self._broken:
            raise self._broken
        self._asks.put((ask, is_wait))

    def _run(self) -> None:
        leave_signals_to_the_main_thread()
        while True:
            ask, is_wait = self._asks.get()
            try:
                ask()
            except StoreError:
                sleep(_AWAY)
            except BaseException as error:  # noqa: BLE001 - the main thread raises it: this thread has no caller
                self._broken = error
            if is_wait:
                self._has_returned = True
                self._bell.ring()
