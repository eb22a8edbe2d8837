"""Living through a store that is away: logged when it goes, when the reason changes, when it is back."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

from queuepool.errors import StoreDenied, StoreDown
from queuepool.events import StoreLost, StoreRefused, StoreRegained, StoreStillLost
from queuepool.events.listeners import Listeners
from queuepool.unix.signals import WorkerSignals

T = TypeVar("T")
_SHORTEST, _LONGEST = 0.05, 2.0
#: seconds after which a refusal that lasts is told again, and a reason that came back
_REMINDER = 60.0


class Reasons:
    """Why one store is away: which reasons are in the log already.

    A reason that comes back within a minute is not logged again, nor one that differs in its numbers alone (a port, a
    number of seconds): else there might be a line for each try.
    """

    def __init__(self, first: str) -> None:
        self._last = ""
        self._logged: dict[str, float] = {}
        self.has_changed(first)

    def has_changed(self, reason: str) -> bool:
        """Whether the log should have this one now: it takes it for logged."""
        reason, now = re.sub(r"\d+", "#", reason), time.monotonic()
        if reason == self._last or now < self._logged.get(reason, -math.inf) + _REMINDER:
            return False
        self._last = reason
        self._logged[reason] = now
        return True


class Outage:
    """One process's view of its store.

    ``telling``: nobody else tells it; so the steward does, and a lone worker. ``longest``: seconds of the longest rest
    between two tries.
    """

    def __init__(
        self,
        attention: WorkerSignals,
        listeners: Listeners,
        *,
        telling: bool,
        patient: bool = True,
        longest: float = _LONGEST,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        self.since = 0.0
        self._attention = attention
        self._listeners = listeners
        self._telling = telling
        self._patient = patient
        self._meanwhile = meanwhile
        self._longest = longest
        self._pause = _SHORTEST
        self._told: dict[str, float] = {}
        self._reasons = Reasons("")

    def insist(self, verb: Callable[[], T]) -> tuple[T, bool]:
        """Call ``verb`` until the store answers; ``False`` when an earlier, unanswered call may have done it.

        Only for verbs that may be repeated. Raises ``StoreDown`` when a stop is asked meanwhile, or at once when not
        patient.
        """
        first = True
        while True:
            try:
                answer = verb()
            except StoreDown as error:
                self.lost(error)
                if self._attention.stop or not self._patient:
                    raise
                self.rest()
                first = False
            else:
                self.regained()
                return answer, first

    def lost(self, error: StoreDown) -> None:
        """A verb went unanswered, or was forbidden."""
        if isinstance(error, StoreDenied):
            self._pause = self._longest
            self.forbidden(str(error))  # no outage: other verbs may be answered in between
        elif not self.since:
            self.since, self._pause = time.monotonic(), _SHORTEST
            self._reasons = Reasons(str(error))
            if self._telling:
                self._listeners.tell(StoreLost(str(error)))
        elif self._telling and self._reasons.has_changed(str(error)):
            # It may have begun with a connection that was cut, and last because the password is wrong.
            self._listeners.tell(StoreStillLost("", str(error)))

    def forbidden(self, problem: str) -> None:
        """Told once a minute and not at every try; by every process, since others may need other rights."""
        now = time.monotonic()
        if now >= self._told.get(problem, -math.inf) + _REMINDER:
            self._told[problem] = now
            self._listeners.tell(StoreRefused("", problem))

    def regained(self) -> None:
        """A verb was answered."""
        if self.since:
            outage, self.since = time.monotonic() - self.since, 0.0
            if self._telling:
                self._listeners.tell(StoreRegained(outage))

    def rest(self) -> None:
        """Longer from time to time, and not at the same moment as everybody else."""
        if self._meanwhile:
            self._meanwhile()  # waiting for a store is no reason to be taken for stuck
        pause = random.uniform(self._pause / 2, self._pause)
        self._pause = min(self._pause * 2, self._longest)
        self._attention.begin_round()  # one signal ends one rest, not all that follow
        self._attention.wait(lambda: time.sleep(pause))
