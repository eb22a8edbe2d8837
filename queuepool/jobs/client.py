"""The producer's side: ``Queue``, which pushes jobs to one connection."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

from queuepool.config.connections import lock_home_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.words import AnsweringQueue, answering
from queuepool.jobs import diversion
from queuepool.jobs.arguments import check_values
from queuepool.jobs.bulk import Several, captured
from queuepool.jobs.definition import written_name
from queuepool.jobs.door import BulkOptions, PushOptions, Terms, check_queue, lock_of, terms_of
from queuepool.jobs.following import JobId, JobState, aended, ended, found
from queuepool.jobs.following_flows import FlowState, aended_flow, ended_flow, found_flow, seen_flow
from queuepool.jobs.in_threads import Threads
from queuepool.jobs.job_options import DAY, Delay, Seconds
from queuepool.jobs.pusher import Encryption, Pusher, data_of
from queuepool.jobs.registry import REGISTRY, Handler, fitted, keywords

if TYPE_CHECKING:
    from queuepool.jobs.cancelling import Cancellation
    from queuepool.jobs.transactions import Aside
    from queuepool.stores.contract import PushStore, Sizes
    from queuepool.stores.factory import Stores

T = TypeVar("T")


class Queue(AnsweringQueue):
    """Pushes to one connection. Threads may share it. ``connect`` makes one.

    A push that returns is stored. One that raises ``StoreDown`` may be stored: it is never resent automatically. A
    silent server counts as gone after the connection's ``timeout`` in seconds; later with ``by_hand``, for a person.
    """

    def __init__(self, settings: ConnectionSettings, *, by_hand: bool = False) -> None:
        from queuepool.stores.factory import Stores  # imported here: slow, and many programs never connect

        self._settings = settings
        self._stores = Stores(settings, shared=True, by_hand=by_hand)
        self._threads = Threads()
        self._aside: Aside = self._threads.run
        self._encryption = Encryption(settings)
        self.pusher = Pusher(settings, self._stores.pushes, self._encryption)

    # For this package. A test that diverts pushes replaces these two, so read them at each use.
    @property
    def settings(self) -> ConnectionSettings:
        return diversion.active.settings(self._settings) if diversion.active else self._settings

    @property
    def stores(self) -> Stores:
        return diversion.active.stores(self._settings) if diversion.active else self._stores

    @answering
    def push(
        self,
        name: str,
        data: object = None,
        *,
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
        encrypted: bool = False,
        unique_id: str | None = None,
        unique_for: Seconds = DAY,
        track: Seconds = 0,
    ) -> JobId:
        """Add a job and return its id. ``options``: Laravel's ``tries``, ``maxExceptions``, ``failOnTimeout``,
        ``backoff``, ``timeout`` and ``retryUntil`` (seconds, or a ``datetime``), and ``tags``, a list of texts.

        ``encrypted``: only queuepool's workers with the same ``app_key`` can read the data. ``unique_id``: take the
        lock of this name and identity until the job is over, for at most ``unique_for`` seconds; if another job holds
        it, nothing is added and the id is empty. ``track``: keep the job's state for that many seconds after its end,
        for ``job`` and ``wait``.

        Raises ``BadPayload`` for an invalid name, data that JSON cannot hold or too much of it, ``TypeError`` as
        ``dispatch`` does if this process knows the job, ``ValueError`` for any other wrong value, and ``StoreError``.
        """
        lock, jobs = lock_of(name, unique_id, unique_for, self.settings), checked([(name, data)])
        return self._put(jobs, terms_of(name, queue, delay, track, options, encrypted, lock))[0]

    @answering
    def later(self, delay: Delay, name: str, data: object = None, *, queue: str = "default") -> JobId:
        """``push`` with the delay first, like Laravel's ``later``."""
        return self.push(name, data, queue=queue, delay=delay)

    @answering
    def bulk(
        self,
        jobs: Iterable[tuple[str, object]],
        *,
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
        encrypted: bool = False,
        track: Seconds = 0,
    ) -> list[JobId]:
        """Add many ``(name, data)`` pairs in few round trips and return their ids. Raises as ``push`` does."""
        pairs = checked(jobs)
        name = pairs[0][0] if pairs else ""
        return self._put(pairs, terms_of(name, queue, delay, track, options, encrypted))

    @answering
    def push_object(
        self,
        class_name: str,
        properties: Mapping[str, Any],
        *,
        protected: Collection[str] = (),
        private: Collection[str] = (),
        queue: str = "default",
        delay: Delay = 0,
        options: Mapping[str, object] | None = None,
        encrypted: bool = False,
        unique_id: str | None = None,
        unique_for: Seconds = DAY,
        track: Seconds = 0,
    ) -> JobId:
        """Add a job that a Laravel worker runs as an object of this PHP class, and return its id.

        ``protected`` and ``private`` name the properties that the class declares so. ``encrypted``: with ``app_key``,
        as Laravel does for ``ShouldBeEncrypted``. ``unique_id`` and ``unique_for`` as for ``push``, with the lock that
        Laravel (from 11 on) takes in its cache for a class without ``displayName()``, so both sides exclude each other.
        Raises as ``push`` does, and ``PhpDataRefused``, a ``ValueError``, for what PHP cannot hold.
        """
        data = data_of(class_name, properties, protected, private, self._encryption if encrypted else None)
        home = lock_home_of(self.settings)
        lock = self.pusher.laravels(lock_of(class_name, unique_id, unique_for, self.settings, home))
        terms = terms_of(class_name, queue, delay, track, options, encrypted, lock)._replace(command=data)
        return self._put([(class_name, properties)], terms)[0]

    async def apush(self, name: str, data: object = None, **about: Unpack[PushOptions]) -> JobId:
        """``push``, awaited: the event loop goes on while the job is stored.

        Lists, dicts and sets in ``data`` are copied when the coroutine starts; other objects must not change until it
        ends. If it is cancelled, the job may still be stored. Raises as ``push`` does.
        """
        return await self.aside(partial(self.push, name, captured(data), **about))

    @answering
    async def alater(self, delay: Delay, name: str, data: object = None, *, queue: str = "default") -> JobId:
        """``later``, awaited as ``apush`` is."""
        return await self.apush(name, data, queue=queue, delay=delay)

    async def abulk(self, jobs: Iterable[tuple[str, object]], **about: Unpack[BulkOptions]) -> list[JobId]:
        """``bulk``, awaited; the jobs' data must not change until it ends."""
        return await self.aside(partial(self.bulk, PAIRS.listed(jobs), **about))

    async def apush_object(self, class_name: str, properties: Mapping[str, Any], **about: Any) -> JobId:
        """``push_object``, awaited as ``apush`` is."""
        return await self.aside(partial(self.push_object, class_name, captured(properties), **about))

    async def asize(self, queue: str = "default") -> int:
        """``size``, awaited."""
        return await self._threads.run(partial(self.size, queue))

    async def aside(self, call: Callable[[], T]) -> T:
        """Await a blocking call on this queue, made in one of its few threads, in the caller's context."""
        return await self._aside(call)  # type: ignore[no-any-return]

    def push_raw(self, payload: bytes, *, queue: str = "default", delay: Delay = 0) -> None:
        """Add these bytes unchanged, so unsigned; workers quarantine what is not a job. Raises as ``push`` does."""
        self.pusher.push_raw(payload, queue, delay)

    def within(self, connection: Any) -> Queue:
        """This queue, pushing in your own transaction on ``connection`` to the queue's database: SQLAlchemy's (also a
        ``Session``), a driver's or Django's. The jobs are committed with it, or not at all. Raises ``ValueError`` in
        Redis; its pushes raise ``TypeError`` or ``ValueError`` for an unsuitable connection.
        """
        from queuepool.jobs.transactions import pushes_within  # imported here, as below: few programs need it

        return self._pushing_to(*pushes_within(self._stores, connection))

    def after_commit(self, session: Any) -> Queue:
        """This queue, pushing once ``session``, an SQLAlchemy session or a Django connection, has committed; if the
        process dies in between, the job is lost. Raises ``TypeError`` for anything that does not report its commits.
        """
        from queuepool.jobs.transactions import pushes_after_commit

        return self._pushing_to(*pushes_after_commit(self._stores.pushes, session))

    def job(self, job_id: str) -> JobState | None:
        """What is known of a tracked job; ``None`` if nothing is kept. Raises ``StoreError``."""
        return found(self.stores, job_id)

    def wait(self, job_id: str, timeout: float | None = None) -> JobState:
        """Wait until a tracked job is done, has failed or was cancelled, and return what is known of it. Raises
        ``TimeoutError`` after ``timeout`` seconds, ``NotTracked`` if nothing is known of it, and ``StoreError``.
        """
        return ended(partial(found, self.stores, job_id), job_id, timeout)

    async def ajob(self, job_id: str) -> JobState | None:
        """``job``, awaited."""
        return await self._threads.run(partial(found, self.stores, job_id))

    async def await_job(self, job_id: str, timeout: float | None = None) -> JobState:
        """``wait``, awaited: the event loop goes on."""
        return await aended(lambda: self.ajob(job_id), job_id, timeout)

    def flow(self, flow_id: str) -> FlowState | None:
        """What is known of a flow; ``None`` if it is not kept any more. Raises ``StoreError``."""
        return found_flow(self.stores, flow_id)

    async def aflow(self, flow_id: str) -> FlowState | None:
        """``flow``, awaited."""
        return await self._threads.run(partial(self.flow, flow_id))

    def wait_flow(self, flow_id: str, timeout: float | None = None) -> FlowState:
        """Wait until a flow is over, and return what is known of it. Raises ``TimeoutError`` after ``timeout`` seconds,
        ``NoSuchFlow`` if nothing is known of it, and ``StoreError``.
        """
        return ended_flow(partial(seen_flow, self.stores, flow_id), flow_id, timeout)

    async def await_flow(self, flow_id: str, timeout: float | None = None) -> FlowState:
        """``wait_flow``, awaited: the event loop goes on."""
        look = partial(seen_flow, self.stores, flow_id)
        return await aended_flow(lambda: self._threads.run(look), flow_id, timeout)

    def cancel_flow(self, flow_id: str) -> bool:
        """Start no more of a flow; what runs goes on to its end. ``False`` if it is over.

        Jobs of it in queues are left out. Raises ``NoSuchFlow`` if nothing is known of it, and ``StoreError``.
        """
        return self.stores.flows.cancel(flow_id)

    async def acancel_flow(self, flow_id: str) -> bool:
        """``cancel_flow``, awaited."""
        return await self._threads.run(partial(self.cancel_flow, flow_id))

    def cancel(self, job_id: str, *, requeue: bool = False, grace: float = 10.0) -> Cancellation:
        """Cancel a job that waits, or that a pool of this host runs: it is recorded as failed, and never tried again.

        A running job that can end by itself has ``grace`` seconds for it; any other is killed with its worker. With
        ``requeue`` a running one goes back to its queue instead, and the attempt does not count. Blocks until that is
        done; the result is true if it was. Raises ``StoreError``.
        """
        from queuepool.board.about import operator  # imported here: few programs cancel
        from queuepool.jobs.cancelling import CancelWish, cancel_in

        return cancel_in(self.stores, CancelWish(job_id, operator(), requeue, grace))

    async def acancel(self, job_id: str, *, requeue: bool = False, grace: float = 10.0) -> Cancellation:
        """``cancel``, awaited."""
        return await self._threads.run(partial(self.cancel, job_id, requeue=requeue, grace=grace))

    def size(self, queue: str = "default") -> int:
        """The number of unfinished jobs: ready, delayed and reserved."""
        return self.sizes(queue).total

    def sizes(self, queue: str = "default") -> Sizes:
        """The number of ready, delayed, reserved and quarantined jobs."""
        return self.stores.queue.sizes(queue)

    def parked(self, queue: str = "default") -> int:
        """The number of jobs that wait for a place of a limit: they are in no queue meanwhile (docs/limits.md)."""
        from queuepool.errors import TableMissing  # imported here: a producer needs none of its tree

        try:
            return self.stores.limits.parked(queue)
        except TableMissing:  # the database was made before there were limits
            return 0

    def unpark(self, queue: str = "default") -> int:
        """Put the jobs that wait for places of limits back into the queue; returns how many there were."""
        return self.stores.limits.unpark(queue) if self.parked(queue) else 0

    def clear(self, queue: str = "default") -> int:
        """Drop the queue's ready, delayed and reserved jobs, with their unique locks; returns how many there were."""
        from queuepool.settlement.held_locks import HeldLocks  # imported here: few programs drop jobs

        check_queue(queue)  # else it could name a key of another queue, like q:delayed
        if self.parked(queue):
            from queuepool.stores.limits import UNPARKED  # imported here, as above

            self.stores.limits.unpark(queue, delay=UNPARKED)
        return self.stores.queue.clear(queue, HeldLocks(self.settings).waiting)

    def close(self) -> None:
        """Close the connections to the stores. Awaited pushes that have not begun raise ``StoreDown``."""
        self._threads.close()
        self._stores.close()

    def _pushing_to(self, pushes: PushStore, aside: Aside) -> Queue:
        """A copy that shares the stores but pushes there; coroutines call it through ``aside``."""
        other = copy(self)
        other.pusher, other._aside = Pusher(self._settings, pushes, self._encryption), aside
        return other

    def _put(self, jobs: Sequence[tuple[str, object]], terms: Terms) -> list[JobId]:
        return [JobId(identity, self) for identity in self.pusher.push(jobs, terms)]


# Pushes by name. If the job is registered in this process, its arguments are checked as by its dispatch.

#: each a name and data
Jobs = Iterable[tuple[str, object]]


class _Parameters(NamedTuple):
    """The parameters of a handler; ``names`` can be passed by keyword."""

    handler: Handler
    signature: inspect.Signature
    names: set[str]
    required: set[str]


def _is_pair(job: object) -> bool:
    return isinstance(job, (tuple, list)) and len(job) == 2


#: what ``Queue.bulk`` takes
PAIRS = Several("bulk", "(name, data)", _is_pair)
#: by the job's name, as inspecting a signature takes longer than a push
_known: dict[str, _Parameters] = {}


def checked(jobs: Jobs) -> list[tuple[str, object]]:
    """The jobs, each a name and data. Raises ``TypeError`` for arguments that do not fit, or items that are not pairs.

    Only jobs under their default name, ``module.function``, or an alias are checked: a name that was chosen by hand may
    also be used by another service, or by PHP. Data other than a mapping is not checked: it has no names to compare.
    """
    pairs = PAIRS.checked(jobs)
    for name, data in pairs:
        _check(name, data)
    return pairs


def _check(name: str, data: object) -> None:
    handler = REGISTRY.known(name)
    if handler is None or handler.target is None or not _is_own(name, handler):
        return
    if data is not None and not isinstance(data, Mapping):
        return
    given, parameters = data or {}, _parameters_of(handler)
    if not parameters.required <= given.keys() <= parameters.names:  # the usual push skips it
        try:
            fitted(parameters.signature, (), given)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    check_values(name, given)


def _is_own(name: str, handler: Handler) -> bool:
    return name == written_name(handler.target) or name in handler.options.aliases


def _parameters_of(handler: Handler) -> _Parameters:
    known = _known.get(handler.name)
    if known is None or known.handler is not handler:
        signature = inspect.signature(handler.target)
        known = _known[handler.name] = _Parameters(handler, signature, *keywords(signature))
    return known
