"""The steward's loop, and the interface of its chores, which look after the pool's jobs in the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeGuard

from queuepool.board.blame import Blame
from queuepool.board.board import Header, Slot, State
from queuepool.errors import PartDown, RefusesNew, StoreDenied, StoreDown, StoreError, StoreFull
from queuepool.settlement.outage import Outage
from queuepool.stores.contract import Wake
from queuepool.unix import proc
from queuepool.unix.originals import sleep
from queuepool.unix.signals import WorkerSignals

#: seconds that one round of chores may take before the master replaces the steward
_STALL_TIMEOUT = 30.0
#: seconds of the longest pause between rounds
_MAX_PAUSE = 1.0
#: seconds for which a steward skips a chore that kept crashing earlier stewards
SKIP_TIME = 60.0
_log = logging.getLogger("queuepool")


class Chore(Protocol):
    """One periodic duty of the steward. If it raises ``StoreDown``, it is retried once the store is back."""

    def run(self, now: float) -> float:
        """Do what is due at ``now`` (monotonic seconds); returns the seconds until the next run."""


class Steward:
    """Runs each chore when it is due, and the urgent ones at every wake-up.

    The master wakes it for a death record; a push wakes it for a job that is due sooner, and operators for ``prompt``
    chores. Those of ``between`` are looked at after each of ``others``: a round may last longer than they may wait.
    An urgent chore that takes long calls ``look_between`` by itself.
    ``wait`` blocks for up to the given seconds and returns what ended the wait, if not they.
    """

    def __init__(
        self,
        name: str,
        slot: Slot,
        header: Header,
        urgent: Sequence[Chore],
        others: Sequence[Chore],
        wait: Callable[[float], Wake | None],
        signals: WorkerSignals,
        outage: Outage,
        blame: Blame,
        prompt: Sequence[Chore] = (),
        between: Sequence[Chore] = (),
    ) -> None:
        self._name = name
        self._slot = slot
        self._header = header
        self._urgent = urgent
        self._due = dict.fromkeys([*urgent, *others], 0.0)
        self._wait = wait
        self._signals = signals
        self._outage = outage
        self._blame = blame
        self._skipped = {chore for chore in self._due if blame.is_deadly(name_of(chore))}
        self._skip_until = time.monotonic() + SKIP_TIME
        self._change: Wake | None = None
        self._prompt = [chore for chore in prompt if chore in self._due]
        self._between = [chore for chore in between if chore in self._due]
        self._unanswered: set[Chore] = set()
        self._refused = ""

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Run until a stop signal, or until ``until`` is true; then run the urgent chores once more."""
        for chore in self._skipped:
            report_skipped(chore)
        while not (self._signals.stop or until()):
            woken = self._signals.begin_round()
            self._round(woken or self._change is not None)
            self._show()
            self._sleep()
        self._round(woken=True)

    def drop(self, chores: Sequence[Chore]) -> None:
        """Stop running these chores."""
        for chore in chores:
            del self._due[chore]
        self._urgent = [chore for chore in self._urgent if chore not in chores]
        self._prompt = [chore for chore in self._prompt if chore not in chores]
        self._between = [chore for chore in self._between if chore not in chores]

    def _show(self) -> None:
        """After a round, show that the steward is running."""
        if self._slot.state != State.RUNNING:
            self._slot.state = State.RUNNING
            proc.show(f"queuepool: steward [{self._name}] running")

    def _round(self, woken: bool) -> None:
        self._slot.deadline = time.monotonic() + _STALL_TIMEOUT
        prompt = self._prompt if self._change is Wake.NEWS else ()
        self._change = None
        for chore in (*(self._urgent if woken else ()), *prompt):
            self._due[chore] = 0.0
        for chore in list(self._due):
            if not (self._runs(chore) and (chore in self._urgent or self.look_between())):
                return  # the other chores would wait for the same silent store

    def look_between(self) -> bool:
        """Run those chores of ``between`` that are due. Returns whether the store is there."""
        return all(map(self._runs, self._between))

    def _runs(self, chore: Chore) -> bool:
        """Run the chore if it is due. Returns whether the store is there."""
        now = time.monotonic()
        if now < self._due[chore]:
            return True
        pause = self._attempt(chore, now)
        if pause is not None:
            self._due[chore] = now + pause
        return pause is not None

    def _attempt(self, chore: Chore, now: float) -> float | None:
        """Run one chore. Returns the seconds until its next run; ``None`` if the store is away."""
        if chore in self._skipped and now < self._skip_until:
            self._unanswered.discard(chore)
            return self._skip_until - now
        try:
            with self._blame.during(name_of(chore)):
                pause = chore.run(now)
        except (StoreDenied, PartDown) as error:
            self._outage.forbidden(str(error))  # the other chores may be permitted, or other nodes may answer
            pause = _MAX_PAUSE
        except StoreError as error:
            if _is_outage(error):
                self._lost_store(error)
                return None
            self._log_refusal(str(error))
            pause = _MAX_PAUSE
        self._answered(chore)
        return pause

    def _answered(self, chore: Chore) -> None:
        """The store has answered this chore; a refusal is an answer, too.

        A chore that did not use the store proves nothing: the store is back once every chore has run.
        """
        self._unanswered.discard(chore)
        if not self._unanswered:
            self._outage.regained()
            self._header.store_lost = 0.0

    def _lost_store(self, error: StoreDown) -> None:
        self._outage.lost(error)
        self._header.store_lost = self._header.store_lost or time.time()
        if isinstance(error, StoreFull):
            self._header.store_full = self._header.store_full or time.time()
        self._unanswered = set(self._due)
        self._due = dict.fromkeys(self._due, 0.0)

    def _log_refusal(self, problem: str) -> None:
        if problem != self._refused:
            self._refused = problem
            _log.error("the store refuses the steward: %s", problem)

    def _sleep(self) -> None:
        if self._outage.since:
            self._outage.rest()
            return
        pause = min(min(self._due.values()) - time.monotonic(), _MAX_PAUSE)
        if pause > 0:
            self._signals.wait(lambda: self._wait_for_push(pause))

    def _wait_for_push(self, pause: float) -> None:
        try:
            self._change = self._wait(pause)
        except StoreDenied as error:
            self._outage.forbidden(str(error))
            sleep(pause)
        except StoreError as error:
            if _is_outage(error):
                self._lost_store(error)
                return
            self._log_refusal(str(error))
            sleep(pause)


def name_of(chore: Chore) -> str:
    """The name by which a chore is blamed for a steward's death."""
    return type(chore).__name__


def report_skipped(chore: Chore) -> None:
    """Log that this chore is skipped."""
    _log.error("skipping %s for %gs: it kept crashing the steward", name_of(chore), SKIP_TIME)


def _is_outage(error: StoreError) -> TypeGuard[StoreDown]:
    """Whether nothing can be done without the store: it is away, or a full database. A full Redis still works."""
    return isinstance(error, StoreDown) and not isinstance(error, RefusesNew)
