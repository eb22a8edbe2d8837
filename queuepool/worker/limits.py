"""What a worker does for jobs with limits, beside running them: has each enter, or be parked, before it begins."""

from __future__ import annotations

import secrets
from functools import partial

from queuepool.errors import BadArguments, NeedsOneSlot, TableMissing
from queuepool.events import JobParked, LeaseLost, LimitChanged
from queuepool.jobs.current_job import Current
from queuepool.jobs.limits import Limit, places_asked
from queuepool.jobs.registry import arguments_for
from queuepool.payload.envelope import Payload
from queuepool.payload.limits import NO_PART, PlaceAsked, holding
from queuepool.settlement.facts import facts_of
from queuepool.worker.context import WorkerContext
from queuepool.worker.parking import ParkBehind, Prepare
from queuepool.worker.plan import Plan


class LimitsOfWorker:
    """Asks the store of jobs; only jobs with limits cost it anything."""

    def __init__(self, context: WorkerContext, prepare: Prepare) -> None:
        self._store = context.store
        self._outage = context.outage
        self._listeners = context.listeners
        self._settler = context.settler
        self._endings = context.settler.endings
        self._behind = ParkBehind(context, prepare, self._asked)
        #: the limits of which this process has said what its code says
        self._declared = set[str]()

    @property
    def may_wait(self) -> bool:
        """Whether a job that is done may keep its places until the worker's next reserve: if that comes at once."""
        return self._store.limits.end_with_reserve and self._behind.is_empty

    def enter(self, job: Current, plan: Plan) -> str | None:
        """The name under which it now holds places that end with its lease, empty if none do; ``None``: it is parked,
        or another worker may have it.

        Raises ``BadArguments`` if the job's arguments do not say which places it needs.
        """
        payload, asked = job.payload, self._asked(job.payload, plan)
        assert job.lease
        try:
            for limit in plan.limits:
                if limit.name not in self._declared:
                    self._declare(limit)
        except (NeedsOneSlot, TableMissing) as error:
            raise BadArguments(payload.name, str(error)) from error
        self._settler.mark_limits()
        self._store.limits.in_use = True
        lease = holding(job.lease)
        enter = partial(self._store.limits.enter, lease, payload.id, asked, secrets.token_hex(4))
        entry, is_certain = self._outage.insist(enter)
        if entry.is_in:
            # A start that is counted stays so; only a place that ends with the lease needs more than its removal.
            return lease.holder if any(not one.per for one in asked) else ""
        if entry.parked_at:
            self._listeners.emit(JobParked(facts_of(payload, lease.queue), entry.parked_at))
            self._behind.park(entry.parked_at)
        elif is_certain:  # else the unanswered call may have parked it
            self._listeners.emit(LeaseLost(facts_of(payload, lease.queue)))
        return None

    def _asked(self, payload: Payload, plan: Plan) -> tuple[PlaceAsked, ...]:
        if not any(one.by or one.fair for one in plan.limits):
            return tuple(PlaceAsked(one.name, NO_PART, one.number, one.seconds) for one in plan.limits)
        target = plan.handler.target if plan.handler else None
        commands = self._endings.commands
        data = commands.of(payload).arguments if plan.is_object_job else commands.data_of(payload)
        try:
            return places_asked(plan.limits, target, *arguments_for(target, data))
        except ValueError as error:
            raise BadArguments(payload.name, str(error)) from error

    def _declare(self, limit: Limit) -> None:
        declare = partial(self._store.limits.declare, limit.name, limit.number, limit.seconds)
        if was := self._outage.insist(declare)[0]:
            self._outage.insist(partial(self._store.limits.sweep, limit.name))  # it may have more places now
            self._listeners.emit(LimitChanged(limit.name, limit.number, limit.seconds, was.number, was.per))
        self._declared.add(limit.name)
