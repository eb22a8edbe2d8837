"""Run the chores of the failed and control stores in a thread, so that a silent one delays no other chore."""

from __future__ import annotations

import time
from collections.abc import Sequence

from queuepool.board.blame import Blame, Thread
from queuepool.errors import StoreDown, StoreError
from queuepool.events.listeners import Listeners
from queuepool.steward.chore import SKIP_TIME, Chore, name_of, report_skipped
from queuepool.steward.side_stores import PERIOD, EventQueue, SideStores
from queuepool.unix.originals import sleep, start_thread
from queuepool.unix.signals import leave_signals_to_the_main_thread

#: seconds between checks for the thread's events
_TICK = 0.1


class SideThread:
    """One chore for the steward: it runs others in a thread of theirs, and emits their events in the main thread."""

    def __init__(
        self,
        chores: Sequence[Chore],
        stores: SideStores,
        events: EventQueue,
        listeners: Listeners,
        blame: Blame,
        thread: Thread,
        *,
        tick: float = _TICK,
    ) -> None:
        self._due = {chore: _first_due(chore, blame) for chore in chores}
        self._blame = blame
        self._thread = thread
        self._stores = stores
        self._events = events
        self._listeners = listeners
        self._tick = tick
        self._has_begun = False
        self._broken: BaseException | None = None

    def run(self, now: float) -> float:
        """Raises whatever ended the thread: the steward dies of it, and the next one starts afresh."""
        if not self._has_begun:
            self._has_begun = True
            start_thread(self._loop, ())
        if self._broken:
            raise self._broken
        self._events.emit_to(self._listeners)
        return self._tick

    def _loop(self) -> None:
        try:
            leave_signals_to_the_main_thread()
            while True:
                self._round()
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self._broken = error

    def _round(self) -> None:
        for chore, due in self._due.items():
            if time.monotonic() >= due:
                self._due[chore] = time.monotonic() + self._attempt(chore)
        sleep(max(min(self._due.values()) - time.monotonic(), 0.0))

    def _attempt(self, chore: Chore) -> float:
        try:
            with self._blame.during(name_of(chore), self._thread):
                return chore.run(time.monotonic())
        except StoreDown as error:
            if error.store:
                self._stores.lost(error)
        except StoreError:
            pass  # from the jobs' store: the steward's other chores meet and report it
        return PERIOD


def _first_due(chore: Chore, blame: Blame) -> float:
    """Monotonic seconds: later if stewards have died of it."""
    if not blame.is_deadly(name_of(chore)):
        return 0.0
    report_skipped(chore)
    return time.monotonic() + SKIP_TIME
