"""``fake``, and how pushes are diverted: one diversion at a time is in force in a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import QueuepoolError
from queuepool.jobs import diversion
from queuepool.jobs.diversion import Push
from queuepool.jobs.transactions import Act, OnCommit, Postponed, pushes_after_commit, still_waits
from queuepool.payload.lease import Lock
from queuepool.payload.members import NewFlow, NewMember
from queuepool.stores.contract import NewJob, PushStore
from queuepool.stores.factory import Stores
from queuepool.stores.sql.borrowed import BorrowedQueue
from queuepool.testing.pushes import PushedJob, Pushes, pushed_jobs
from queuepool.testing.temporary import TIME, empty, temporary_stores


@contextmanager
def fake() -> Iterator[Pushes]:
    """Record what this process dispatches, by any means and in any thread, and send none of it to its store.

    A dispatch still refuses what it always does. The jobs wait in a temporary store, where ``drain`` can run them; so a
    unique job gets an empty id while an equal one waits. Raises ``QueuepoolError`` within another ``fake`` or
    ``run_now``.
    """
    recorder = Recorder("fake()")
    with diverted(recorder):
        try:
            yield recorder.recorded
        finally:
            recorder.settle()


@contextmanager
def diverted(recorder: Recorder) -> Iterator[None]:
    """Divert all pushes of this process for the block. Raises ``QueuepoolError`` within another such block."""
    if outer := diversion.active:
        raise QueuepoolError(
            f"{recorder.what} within {outer.what}, which a fixture may have put in force: use that one"
        )
    diversion.divert(recorder)
    try:
        yield
    finally:
        diversion.divert(None)
        for one in recorder.waiting:
            one.drop()
        TIME.reset()
        for stores in recorder.used:
            empty(stores)


class Recorder:
    """The diversion of ``fake``: pushes go to temporary stores, and are recorded."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.recorded = Pushes(self.settle, self._waiting_jobs)
        self.waiting: list[WaitingPush] = []
        #: in the order of their first use
        self.used: list[Stores] = []

    def settings(self, settings: ConnectionSettings) -> ConnectionSettings:
        return self.stores(settings).settings

    def stores(self, settings: ConnectionSettings) -> Stores:
        stores = temporary_stores(settings)
        if stores not in self.used:
            self.used.append(stores)
        return stores

    def pushes(self, settings: ConnectionSettings, pushes: PushStore, push: Push) -> PushStore:
        """A push in a transaction of the application's, or after it, waits for the commit if that can be seen."""
        stores = self.stores(settings)
        waits, is_within = postponed(pushes), isinstance(pushes, BorrowedQueue)
        if waits is None:
            return Reporting(stores.pushes, lambda: self.pushed(stores, push, is_uncommitted=is_within))

        def committed() -> None:
            self.pushed(stores, push)
            self.run()

        return waits.onto(Reporting(stores.pushes, committed), partial(self._wait, waits.session, [push]))

    def flow_pushes(self, settings: ConnectionSettings, pushes: PushStore, members: Sequence[Push]) -> PushStore:
        """As ``pushes``, for a flow: a session that reports its commit is waited for, but a test's own never comes."""
        stores = self.stores(settings)
        report = partial(self.flow_pushed, stores, members)
        if (waits := postponed(pushes)) is None:
            return Reporting(stores.pushes, report)

        def committed() -> None:
            report()
            self.run()

        return waits.onto(Reporting(stores.pushes, committed), partial(self._wait, waits.session, members))

    def flow_pushed(self, stores: Stores, members: Sequence[Push]) -> None:
        """Called when a flow is stored."""
        for push in members:
            self.recorded.add(pushed_jobs(push))

    def pushed(self, stores: Stores, push: Push, *, is_uncommitted: bool = False) -> None:
        """Called when it is stored. ``is_uncommitted``: in a transaction whose end cannot be seen."""
        self.recorded.add(pushed_jobs(push))

    def run(self) -> None:
        """Called when a push is over, and at a commit. It runs no job."""
        self.settle()

    def settle(self) -> None:
        """Make the pushes whose commit only a test case withholds, as long as the block lasts."""
        if diversion.active is not self:
            return
        for one in [*self.waiting]:
            if one.is_withheld:
                one()
        self.waiting = [one for one in self.waiting if one.still_waits]

    def _wait(self, session: Any, pushes: Sequence[Push], on_commit: OnCommit, act: Act) -> None:
        one = WaitingPush(session, pushes, act)
        on_commit(one)
        self.waiting.append(one)

    def _waiting_jobs(self) -> list[PushedJob]:
        return [job for one in self.waiting for push in one.pushes for job in pushed_jobs(push)]


def postponed(pushes: PushStore) -> Postponed | None:
    """Where a push waits for its commit; ``None`` if it has none, or if its connection does not report its commits.

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


class Reporting:
    """Pushes to a temporary store; ``report`` is called after a push, but not for one whose lock is held."""

    def __init__(self, pushes: PushStore, report: Callable[[], object]) -> None:
        self._pushes = pushes
        self._report = report

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """As the contract says."""
        is_pushed = self._pushes.push(queue, jobs, delay, lock)
        if is_pushed:
            self._report()
        return is_pushed

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As the contract says."""
        self._pushes.write_flow(flow, members)
        self._report()


class WaitingPush:
    """A push, or a flow of several, that waits for a commit of the application's: called then, or earlier if only a
    test case withholds it.

    Django's ``TestCase`` never commits. The second call does nothing.
    """

    def __init__(self, session: Any, pushes: Sequence[Push], act: Callable[[], object]) -> None:
        self.pushes = pushes
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
