"""The thread in which a worker of many jobs waits for new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue

from queuepool.errors import StoreError
from queuepool.stores.contract import QueueStore
from queuepool.unix.originals import sleep, start_thread
from queuepool.unix.signals import leave_signals_to_the_main_thread
from queuepool.worker.lane_loop import Bell

#: seconds until the next wait if the store is away; the main thread meets that too, and reports it
_AWAY = 0.05


class Waiter:
    """Waits at the store for jobs, in a thread of its own: the main thread has other things to ask meanwhile."""

    def __init__(self, store: QueueStore, bell: Bell) -> None:
        self._store = store
        self._bell = bell
        #: each with whether it is a wait
        self._asks: SimpleQueue[tuple[Callable[[], object], bool]] = SimpleQueue()
        #: of the wait whose end has yet to be seen
        self._queues: Sequence[str] = ()
        #: whether that wait has; what is passed on meanwhile is no wait, and must not keep the next one out
        self._has_returned = True
        #: what ended the thread
        self._broken: BaseException | None = None
        start_thread(self._run, ())

    @property
    def is_over(self) -> bool:
        """Whether the wait is over, which has yet to be seen."""
        return self._has_returned and bool(self._queues)

    def ended(self) -> Sequence[str]:
        """The queues of the wait that is over; none if none is, or if that has been seen."""
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
        """Have another worker woken instead: a wait may have taken the token of a job that nobody here will ask for."""
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
            except BaseException as error:  # noqa: BLE001 - the main thread raises it: nobody looks at this one
                self._broken = error
            if is_wait:
                self._has_returned = True
                self._bell.ring()
