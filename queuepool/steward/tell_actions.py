"""Report to the log and the listeners of each pool what operators have done, from the journal of its store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from queuepool.errors import StoreDenied
from queuepool.events import OperatorActed
from queuepool.steward.side_stores import Emitter
from queuepool.stores.control import PERIOD
from queuepool.stores.journal import Action, Journal

#: most lines that are read at once
_MOST = 100


class TellActions:
    """Reads the journal's new lines when the control keys show that there are some.

    What was done while no steward ran is in the journal alone.
    """

    def __init__(self, journal: Journal, news: Callable[[], str | None], emitter: Emitter) -> None:
        self._journal = journal
        self._news = news
        self._emitter = emitter
        #: the number up to which all news is known; the lines of the last look
        self._known: str | None = None
        self._lines: frozenset[str] | None = None

    def run(self, now: float) -> float:
        news = self._news()
        if self._lines is None or news != self._known:
            with suppress(StoreDenied):  # a user who may not read it
                self._look()
            self._known = news
        return PERIOD

    def _look(self) -> None:
        found = self._journal.last(_MOST)
        if self._lines is not None:
            for action in found:
                if action.id not in self._lines:
                    self._emitter.emit(_event(action))
        self._lines = frozenset(action.id for action in found)


def _event(action: Action) -> OperatorActed:
    at = datetime.fromtimestamp(action.at, UTC)
    return OperatorActed(action.by, action.verb, action.subject, action.count, at)
