"""Pushes that wait for a commit of the application's, and the commits that Django's ``TestCase`` never makes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from queuepool.jobs.after_commit import Postponed, pushes_after_commit, still_waits
from queuepool.jobs.diversion import Push
from queuepool.stores.contract import Pushes
from queuepool.stores.sql.borrowed import BorrowedQueue


class Waiting:
    """One push: called at the commit, or before if only a test case withholds that. The second call does nothing."""

    def __init__(self, session: Any, push: Push, act: Callable[[], object]) -> None:
        self.push = push
        self._session = session
        self._transactions = _transactions_of(session)
        self._act = act
        self._is_made = self._is_dropped = False

    def __call__(self) -> None:
        if not self._is_made and not self._is_dropped:
            self._is_made = True
            self._act()

    def drop(self) -> None:
        """The block is over: a commit that comes now makes no push."""
        self._is_dropped = True

    @property
    def still_waits(self) -> bool:
        """Whether it is neither made nor rolled back."""
        return not self._is_made and still_waits(self._session, self)

    @property
    def is_withheld(self) -> bool:
        """Whether the application has left its own transactions, so that those of Django's ``TestCase`` are left."""
        now = _transactions_of(self._session)
        left = [block for block in self._transactions if block in now]
        return self.still_waits and bool(left) and all(getattr(block, "_from_testcase", False) for block in left)


def _transactions_of(session: Any) -> list[Any]:
    """The blocks of ``atomic`` that are open on Django's connection, outermost first."""
    return [*getattr(session, "atomic_blocks", ())]


def postponed(pushes: Pushes) -> Postponed | None:
    """Where a push waits for its commit; ``None`` if it has none, or if its connection does not say when it commits.

    Raises ``TypeError`` and ``ValueError`` for a connection that a push in its transaction refuses.
    """
    if isinstance(pushes, Postponed):
        return pushes
    if isinstance(pushes, BorrowedQueue):
        pushes.check()
        if getattr(pushes.connection, "in_atomic_block", True):  # else autocommit is off, and on_commit refuses that
            with suppress(TypeError):
                return pushes_after_commit(pushes, pushes.connection)[0]
    return None
