"""The failed store and the control store, if they are apart from the jobs' store: jobs go on while one is away."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from queuepool.board.blame import Blame, Thread
from queuepool.board.board import Board
from queuepool.board.fields import Header
from queuepool.errors import StoreDown, StoreError
from queuepool.events import Event, FailureUnrecorded, SideStoreLost, SideStoreRegained, StoreStillLost
from queuepool.events.listeners import Listeners
from queuepool.settlement.outage import Reasons
from queuepool.steward.loop import SKIP_TIME, Chore, name_of, report_skipped
from queuepool.stores.elsewhere import Forwarder
from queuepool.unix.originals import sleep, start_thread
from queuepool.unix.signals import leave_signals_to_the_main_thread

#: seconds between checks for waiting failures, or for a store that is back
PERIOD = 1.0
#: after waiting for a silent store, the jobs get this many times that time
_PAUSES = 10.0
#: seconds between checks of the board for failed jobs
_BOARD_TICK = 0.05
#: seconds between checks for the thread's events
_EVENTS_TICK = 0.1


class EventQueue:
    """Keeps another thread's events until the main thread emits them."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def emit(self, event: Event) -> None:
        self._events.append(event)

    def emit_to(self, listeners: Listeners) -> None:
        """Emit what was kept; called by the main thread."""
        while self._events:
            listeners.emit(self._events.popleft())


#: what a chore emits to: in the main thread the listeners, in another a queue
Emitter = Listeners | EventQueue


class SideStores:
    """One process's view of these stores: emits events when one goes away, when the reason changes, when it is back.

    ``header``: where the board shows them.
    """

    def __init__(self, emitter: Emitter, header: Header | None = None) -> None:
        self._emitter = emitter
        self._header = header
        #: when each store that is away was lost (monotonic)
        self._lost: dict[str, float] = {}
        self._reasons: dict[str, Reasons] = {}

    def lost(self, error: StoreDown) -> None:
        """The store that ``error.store`` names is away."""
        if error.store not in self._lost:
            self._lost[error.store] = time.monotonic()
            self._reasons[error.store] = Reasons(str(error))
            self._show(error.store, time.time())
            self._emitter.emit(SideStoreLost(error.store, str(error)))
        elif self._reasons[error.store].has_changed(str(error)):
            self._emitter.emit(StoreStillLost(error.store, str(error)))

    def answered(self, store: str) -> None:
        """This store has answered."""
        if store in self._lost:
            self._show(store, 0.0)
            self._emitter.emit(SideStoreRegained(store, time.monotonic() - self._lost.pop(store)))

    def _show(self, store: str, since: float) -> None:
        if self._header:
            setattr(self._header, f"{store.replace(' ', '_')}_lost", since)


class FailureRecorder:
    """Moves failures from the outbox beside the jobs to the failed store, for the steward or a lone worker."""

    def __init__(self, forwarder: Forwarder, emitter: Emitter, stores: SideStores) -> None:
        self._forwarder = forwarder
        self._emitter = emitter
        self._stores = stores
        self._next_run = 0.0
        self._refused = ""

    def run(self) -> None:
        """Call ``record``, but at most once a second."""
        began = time.monotonic()
        if began >= self._next_run:
            self.record()
            self._next_run = time.monotonic() + max(PERIOD, _PAUSES * (time.monotonic() - began))

    def record(self) -> int:
        """Record all waiting failures now; returns how many still wait. Raises ``StoreDown`` of the jobs' store."""
        try:
            left = self._forwarder.forward()
        except StoreDown as error:
            if not error.store:
                raise
            self._stores.lost(error)
            return self._forwarder.count()
        self._stores.answered("failed store")
        if self._forwarder.problem != self._refused:
            self._refused = self._forwarder.problem
            if self._refused:
                self._emitter.emit(FailureUnrecorded(left, self._refused))
        return left


class RecordFailures:
    """Records failures: at once when the board shows another failed job, and once a second for other hosts' jobs."""

    def __init__(self, board: Board, recorder: FailureRecorder) -> None:
        self._board = board
        self._recorder = recorder
        self._last_failed = -1
        self._next_run = 0.0

    def run(self, now: float) -> float:
        failed = self._board.totals()[1]
        if failed != self._last_failed or now >= self._next_run:
            self._last_failed, self._next_run = failed, now + PERIOD
            self._board.header.unrecorded = self._recorder.record()
        return _BOARD_TICK


class SideThread:
    """Runs other chores in a thread, where a silent store delays only them; emits their events in the main thread."""

    def __init__(
        self,
        chores: Sequence[Chore],
        stores: SideStores,
        events: EventQueue,
        listeners: Listeners,
        blame: Blame,
        thread: Thread,
        *,
        tick: float = _EVENTS_TICK,
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
        """Emit the thread's events. Raises whatever ended it: the steward exits, and the next one starts afresh."""
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
            pass  # from the jobs' store: the steward's other chores meet it too and report it
        return PERIOD


def _first_due(chore: Chore, blame: Blame) -> float:
    """When to run it first (monotonic): later if it kept crashing the steward."""
    if not blame.is_deadly(name_of(chore)):
        return 0.0
    report_skipped(chore)
    return time.monotonic() + SKIP_TIME
