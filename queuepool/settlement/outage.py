"""Wait through an outage of the store; emit events when it begins, when the reason changes and when it ends."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

from queuepool.errors import PartDown, StoreDenied, StoreDown
from queuepool.events import StoreLost, StoreRefused, StoreRegained, StoreStillLost
from queuepool.events.listeners import Listeners
from queuepool.unix.originals import sleep
from queuepool.unix.signals import WorkerSignals

T = TypeVar("T")
#: seconds of the first pause between two tries, and of the longest
_MIN_PAUSE, _MAX_PAUSE = 0.05, 2.0
#: seconds after which a lasting refusal, or a reason that came back, is reported again
_REMINDER = 60.0


class Reasons:
    """The reasons for one store's outage that are already in the log.

    A reason that returns within a minute is not logged again, nor is one that differs only in its numbers (a port, a
    number of seconds): otherwise there might be a line for each try.
    """

    def __init__(self, first: str) -> None:
        self._last = ""
        self._logged: dict[str, float] = {}
        self.has_changed(first)

    def has_changed(self, reason: str) -> bool:
        """Whether to log this reason now; it then counts as logged."""
        reason, now = re.sub(r"\d+", "#", reason), time.monotonic()
        if reason == self._last or now < self._logged.get(reason, -math.inf) + _REMINDER:
            return False
        self._last = reason
        self._logged[reason] = now
        return True


class Outage:
    """One process's view of its store.

    ``announces``: this process emits the events of an outage; only the steward and a lone worker do.
    ``retries``: wait through an outage. ``max_pause``: seconds of the longest pause between two tries. ``meanwhile`` is
    called before each pause, and between many calls. ``ask_again``: as in ``Stores``.
    """

    def __init__(
        self,
        signals: WorkerSignals,
        listeners: Listeners,
        *,
        announces: bool,
        retries: bool = True,
        max_pause: float = _MAX_PAUSE,
        meanwhile: Callable[[], None] | None = None,
        ask_again: Callable[[], object] | None = None,
    ) -> None:
        self.since = 0.0
        self._signals = signals
        self._listeners = listeners
        self._announces = announces
        self._retries = retries
        self.meanwhile = meanwhile
        #: ``insist`` raises ``PartDown`` at once: the caller has jobs of other nodes, too
        self.leaves_parts = False
        self._ask_again = ask_again
        self._max_pause = max_pause
        self._pause = _MIN_PAUSE
        self._reported: dict[str, float] = {}
        self._reasons = Reasons("")

    def insist(self, verb: Callable[[], T]) -> tuple[T, bool]:
        """Call ``verb`` until the store answers; returns the answer, and whether the first call got it.

        If not, an earlier, unanswered call may have done the work, so use this only for verbs that may be repeated.
        Raises ``StoreDown`` when a stop is requested in the meantime, or at once if ``retries`` is off, or
        ``leaves_parts`` says so. Raises ``StoreError`` when the store refuses.
        """
        first = True
        while True:
            try:
                answer = verb()
            except StoreDown as error:
                self.lost(error)
                if not self._tries_again(error):
                    raise
                first = False
            else:
                self.regained()
                return answer, first

    def _tries_again(self, error: StoreDown) -> bool:
        """Whether to try again, after a pause. A stop ends that, after a last try with what was not even asked."""
        if self._signals.stop and self._retries and self._ask_again:
            self._ask_again()
            self._ask_again = None
            return True
        if self._signals.stop or not self._retries or (self.leaves_parts and isinstance(error, PartDown)):
            return False
        self.rest()
        return True

    def lost(self, error: StoreDown) -> None:
        """A verb went unanswered, or was forbidden."""
        if isinstance(error, StoreDenied | PartDown):
            self._pause = self._max_pause
            self.forbidden(str(error))  # not an outage: other verbs may succeed in between
        elif not self.since:
            self.since, self._pause = time.monotonic(), _MIN_PAUSE
            self._reasons = Reasons(str(error))
            if self._announces:
                self._listeners.emit(StoreLost(str(error)))
        elif self._announces and self._reasons.has_changed(str(error)):
            # An outage may begin with a lost connection, and last because the password is wrong.
            self._listeners.emit(StoreStillLost("", str(error)))

    def forbidden(self, problem: str) -> None:
        """Emit a refusal once a minute, not at every try; every process does, as each may need other permissions."""
        now = time.monotonic()
        if now >= self._reported.get(problem, -math.inf) + _REMINDER:
            self._reported[problem] = now
            self._listeners.emit(StoreRefused("", problem))

    def regained(self) -> None:
        """A verb was answered."""
        if self.since:
            outage, self.since = time.monotonic() - self.since, 0.0
            if self._announces:
                self._listeners.emit(StoreRegained(outage))

    def goes_on(self) -> None:
        """A process that waits for the store, or asks it often, must not look stuck."""
        if self.meanwhile:
            self.meanwhile()

    def rest(self) -> None:
        """Pause before the next try: longer each time, and by chance, so that processes do not retry all at once."""
        self.goes_on()
        pause = random.uniform(self._pause / 2, self._pause)
        self._pause = min(self._pause * 2, self._max_pause)
        self._signals.begin_round()  # one signal ends one pause, not all that follow
        self._signals.wait(lambda: sleep(pause))
