"""Pushes that belong to an application's transaction: within it, where it is the queue's own database; else after it.

A queue elsewhere cannot take part in the transaction, so its pushes wait for the commit. Only SQLAlchemy's sessions and
Django's connections report their commits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from queuepool.errors import StoreError
from queuepool.payload.lease import Lock
from queuepool.payload.members import NewFlow, NewMember

if TYPE_CHECKING:
    from queuepool.stores.contract import NewJob, PushStore
    from queuepool.stores.factory import Stores

_TAKES = (
    "after_commit takes an SQLAlchemy Session or AsyncSession, or a Django connection, not a {}: other connections do "
    "not report their commits"
)
#: the key of a session's ``PendingPushes`` in ``Session.info``
_PENDING = "queuepool after_commit"
Act = Callable[[], object]
#: registers an act for after the commit
OnCommit = Callable[[Act], object]
Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
_IN_REDIS = (
    "within: this queue is in Redis, which cannot join a database's transaction: use after_commit, or a queue in "
    "that database"
)


def pushes_within(stores: Stores, connection: Any) -> tuple[PushStore, Aside]:
    """Where to push on this connection, and how to do so from a coroutine.

    Raises ``ValueError`` for a queue that is not in a database.
    """
    if stores.borrowing is None:
        raise ValueError(_IN_REDIS)
    borrowed = stores.borrowing.on(connection)
    return borrowed, borrowed.aside


def pushes_after_commit(pushes: PushStore, session: Any) -> tuple[Postponed, Aside]:
    """Where to push after the commit, and how to do so from a coroutine.

    Raises ``TypeError`` for a connection that does not report its commits.
    """

    async def aside(call: Callable[[], Any]) -> Any:
        return call()  # it only registers

    return Postponed(pushes, session, _on_commit_of(session)), aside


class Postponed:
    """Keeps pushes until the commit. Payloads are encoded before, so errors in them are raised at once."""

    def __init__(self, pushes: PushStore, session: Any, on_commit: OnCommit) -> None:
        self._pushes = pushes
        self.session = session
        self._on_commit = on_commit

    def onto(self, pushes: PushStore, on_commit: Callable[[OnCommit, Act], object]) -> Postponed:
        """A copy that pushes there; ``on_commit`` gets the former way to register an act, and the act."""
        return Postponed(pushes, self.session, partial(on_commit, self._on_commit))

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """Always ``True``: only after the commit is it known whether another job holds the lock."""
        self._on_commit(partial(self._pushes.push, queue, jobs, delay, lock))
        return True

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As the contract says, at the commit."""
        self._on_commit(partial(self._pushes.write_flow, flow, members))


def still_waits(session: Any, act: Act) -> bool:
    """Whether the act is still registered: a rollback of its transaction or savepoint drops it."""
    if _is_djangos(session):
        return any(entry[1] is act for entry in session.run_on_commit)
    return _pending_of(_inner(session)).has(act)


def _is_djangos(session: Any) -> bool:
    return hasattr(session, "on_commit") and hasattr(session, "in_atomic_block")


def _inner(session: Any) -> Any:
    session = session() if hasattr(session, "registry") else session  # a scoped_session has one for each thread
    return getattr(session, "sync_session", session)


def _on_commit_of(session: Any) -> OnCommit:
    if _is_djangos(session):  # it knows its savepoints
        return session.on_commit  # type: ignore[no-any-return]
    session = session() if hasattr(session, "registry") else session
    inner = _inner(session)
    if not hasattr(inner, "get_nested_transaction") or not hasattr(inner, "get_bind"):
        raise TypeError(_TAKES.format(f"{type(session).__module__}.{type(session).__qualname__}"))
    return partial(_pending_of(inner).add, inner, _off_loop if inner is not session else _call)


class PendingPushes:
    """The pushes that wait for one session's commit, each with the transaction and the savepoints that it is in."""

    def __init__(self) -> None:
        self._waiting: list[tuple[list[Any], Callable[[Act], object], Act]] = []
        self._due: list[Act] = []

    def add(self, session: Any, carry_out: Callable[[Act], object], act: Act) -> None:
        """Keep the act for the session's current transaction, which begins now if there is none."""
        inmost = session.get_nested_transaction() or session.get_transaction() or session.begin()
        self._waiting.append((list(_with_parents(inmost)), carry_out, act))

    def has(self, act: Act) -> bool:
        """Whether the act waits for the commit."""
        return any(one is act for *_, one in self._waiting)

    def committed(self, session: Any) -> None:
        if not session.in_nested_transaction():  # else a savepoint, whose parent may still be rolled back
            self._due += [partial(carry_out, act) for _, carry_out, act in self._waiting]
            self._waiting.clear()

    def rolled_back(self, _session: Any, transaction: Any) -> None:
        self._waiting = [one for one in self._waiting if transaction not in one[0]]

    def ended(self, session: Any, transaction: Any) -> None:
        """Push what was committed. Not earlier: an error would leave the session in the middle of its commit.

        A session that is closed without a commit also ends here.
        """
        if transaction.parent is None:
            self.rolled_back(session, transaction)
            due, self._due = self._due, []
            _carry_out(due)


def _carry_out(due: Sequence[Act]) -> None:
    for number, act in enumerate(due):
        try:
            act()
        except StoreError as error:
            error.add_note(f"the transaction is committed, but {len(due) - number} of its jobs were not pushed")
            raise


def _pending_of(session: Any) -> PendingPushes:
    """The session's own, made once, so that its events are registered once."""
    found = session.info.get(_PENDING)
    if found is None:
        from sqlalchemy import event  # imported here: whoever has a session has loaded it

        found = session.info[_PENDING] = PendingPushes()
        event.listen(session, "after_commit", found.committed)
        event.listen(session, "after_soft_rollback", found.rolled_back)
        event.listen(session, "after_transaction_end", found.ended)
    return found  # type: ignore[no-any-return]


def _with_parents(transaction: Any) -> Iterator[Any]:
    while transaction is not None:
        yield transaction
        transaction = transaction.parent


def _call(act: Act) -> None:
    act()


def _off_loop(act: Act) -> None:
    """Carry out the act in a thread, so that the loop of the committing AsyncSession is not blocked."""
    import asyncio

    from sqlalchemy.util import await_only

    await_only(asyncio.to_thread(act))
