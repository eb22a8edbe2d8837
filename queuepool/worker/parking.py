"""Parks, with a job that finds no place, those behind it that would find none there either.

A worker of a database may hold dozens of them; one by one, each would cost a transaction, while what was handed on
waits in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from queuepool.errors import BadArguments, BadPayload
from queuepool.events import JobParked
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.payload.limits import PlaceAsked, holding
from queuepool.settlement.facts import facts_of
from queuepool.settlement.verdict import may_start
from queuepool.stores.limits import Entering
from queuepool.worker.context import WorkerContext
from queuepool.worker.plan import Plan
from queuepool.worker.slot_writer import HeldBatch

#: as ``Preparer.prepare``
Prepare = Callable[[Lease], tuple[Payload, Plan]]


class ParkBehind:
    """Looks at what waits in this worker's batch; a worker with lanes has none.

    ``asked``: the places that a job needs, of which it may raise ``BadArguments``.
    """

    def __init__(
        self, context: WorkerContext, prepare: Prepare, asked: Callable[[Payload, Plan], tuple[PlaceAsked, ...]]
    ) -> None:
        batch = context.slot_writer.batch
        self._batch = batch if isinstance(batch, HeldBatch) else None
        self._store = context.store
        self._outage = context.outage
        self._listeners = context.listeners
        self._prepare = prepare
        self._asked = asked

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits there, so that the worker's next job has yet to be reserved."""
        return self._batch is not None and not self._batch.waiting

    def park(self, key: str) -> None:
        """Park those that wait for a place at this key, at which a job was parked just now."""
        park = self._store.limits.park_behind
        if park is None or self._batch is None:
            return
        self._batch.has_parked = True
        if not (found := dict(self._found(self._batch, key))):
            return
        jobs = [entering for entering, _ in found.values()]
        answers, is_certain = self._outage.insist(partial(park, key, jobs))
        # An unanswered call may have parked those whose leases are lost; else their own turn tells of that.
        gone = [n for n, answer in zip(found, answers, strict=True) if answer or (answer is None and not is_certain)]
        self._batch.parked(gone)
        for number in gone:
            entering, payload = found[number]
            self._listeners.emit(JobParked(facts_of(payload, entering.lease.queue), key))

    def _found(self, batch: HeldBatch, key: str) -> Iterator[tuple[int, tuple[Entering, Payload]]]:
        """By their numbers in the batch. What must be asked first, or is not to run, waits for its own turn."""
        for number, lease in batch.waiting:
            batch.reads(number)
            try:
                payload, plan = self._prepare(lease)
                asked = self._asked(payload, plan) if _only_enters(payload, plan) else ()
            except (BadPayload, BadArguments):
                asked = ()
            batch.has_read(number)
            if any(one.key == key for one in asked):
                yield number, (Entering(holding(lease), payload.id, asked), payload)


def _only_enters(payload: Payload, plan: Plan) -> bool:
    is_asked = plan.is_member or plan.has_end
    return not is_asked and may_start(payload.name, payload.attempts, plan.policy, 0.0) is None
