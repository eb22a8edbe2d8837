"""What a worker in a test's own process does without: alarms, signal handlers, a title, a loop of its own thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable

from queuepool.events.listeners import Listeners
from queuepool.pool.private_slot import private_slot
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.worker.django_support import renew_connections_outside_transactions
from queuepool.worker.invoker import Invoker, JobLoop
from queuepool.worker.slot_writer import SlotWriter


class NoAlarm(Alarm):
    """No timer and no handler: they are the test's process's own."""

    def __init__(self) -> None:
        pass

    def prepare(self) -> None: ...

    def is_intact(self) -> bool:
        return True

    def is_open(self) -> bool:
        return True

    def arm(self, seconds: float) -> None: ...

    def disarm(self) -> None: ...


class QuietSlotWriter(SlotWriter):
    """Leaves the title of the process as it is."""

    def __init__(self) -> None:
        super().__init__(private_slot(), "testing", NoAlarm(), WorkerSignals(), stall_timeout=0.0)

    def _title(self, rest: str) -> None: ...


class LoopAside(JobLoop):
    """A loop for async jobs. Where the test itself is async, it runs in another thread meanwhile.

    A thread can run one loop only, and the test's waits for its ``dispatch``.
    """

    def run(self, work: Awaitable[object]) -> object:
        if not _is_in_a_loop():
            return super().run(work)
        ended: list[BaseException | None] = []
        values: list[object] = []

        def run() -> None:
            try:
                values.append(super(LoopAside, self).run(work))
                ended.append(None)
            except BaseException as error:  # noqa: BLE001 - raised below, where the job runs
                ended.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
        thread.start()
        thread.join()
        if ended[0] is not None:
            raise ended[0]
        return values[0]


class QuietInvoker(Invoker):
    """Calls jobs without a soft timeout, which takes a signal handler; its loops are closed by ``close``."""

    renew_connections = staticmethod(renew_connections_outside_transactions)

    def __init__(self, listeners: Listeners) -> None:
        super().__init__(listeners, self._make_loop)
        self._made: list[LoopAside] = []

    def call_within(self, function: Callable[[], object], soft_timeout: float) -> object:
        return self.call(function)

    def close(self) -> None:
        for loop in self._made:
            loop.close()

    def _make_loop(self) -> LoopAside:
        self._made.append(LoopAside())
        return self._made[-1]


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
