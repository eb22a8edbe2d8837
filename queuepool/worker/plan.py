"""How the jobs of one kind run: looked up once for all with the same name and payload options."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from queuepool.config.settings import PoolSettings
from queuepool.errors import UnknownJob
from queuepool.jobs.arguments import Reader, reader_of
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import Handler, Registry
from queuepool.payload.envelope import OBJECT_JOB, Payload
from queuepool.payload.options import PayloadOptions
from queuepool.settlement.verdict import Locks, Policy
from queuepool.worker.guard import Guard, guard_of
from queuepool.worker.policies import policy_of, timeout_of

_MOST = 256


class Plan(NamedTuple):
    """``handler`` is ``None`` if none is registered under the name; ``timeout`` in seconds, 0 = no limit."""

    #: kept alive, as plans are found by its identity
    options: PayloadOptions
    handler: Handler | None
    policy: Policy
    #: the policy as written on the board
    text: str
    timeout: float
    warning: str
    #: converts the arguments, if the handler's annotations need more than plain JSON
    read: Reader | None = None
    #: whether Laravel may expect more of it than that its handler is called
    is_object_job: bool = False
    #: whether its handler says more of its unique lock than its payload does
    is_unique: bool = False
    #: seconds that the job's state is kept after its end; 0 = it is not tracked
    track: float = 0.0
    #: whether anything may follow from the end of these jobs, as far as it is known without their context
    may_follow: bool = False
    #: what its handler has beyond a call: a soft timeout, exceptions that are not retried; ``None`` = nothing
    guard: Guard | None = None
    #: whether a job may come too late, for which the store's clock is read: ``expires``, ``retryUntil``
    has_end: bool = False

    def with_locks(self, locks: Locks) -> Plan:
        """The plan with these unique locks in its policy."""
        policy = replace(self.policy, locks=locks)
        return self._replace(policy=policy, text=policy.to_text())


class Plans:
    """One worker's plans."""

    def __init__(self, pool: PoolSettings, registry: Registry) -> None:
        self._pool = pool
        self._registry = registry
        self._known: dict[tuple[int, str], Plan] = {}

    def of(self, payload: Payload) -> Plan:
        """The plan for this payload; made once, then cached."""
        # By the identity of the options, which the plan keeps alive: comparing them all would take longer.
        key = id(payload.options), payload.name
        plan = self._known.get(key)
        if plan is None:
            if len(self._known) == _MOST:
                self._known.clear()
            plan = self._known[key] = self._made(payload.options, payload.name)
        return plan

    def _made(self, asked: PayloadOptions, name: str) -> Plan:
        handler = self._find(name)
        options = handler.options if handler else Options()
        timeout, warning = timeout_of(asked, options, self._pool)
        policy = policy_of(asked, options, self._pool)
        read = reader_of(name, handler.target) if handler and handler.target else None
        is_object_job = asked.job == OBJECT_JOB
        track = (options.track or self._pool.track) if asked.track is None else asked.track
        may_follow = is_object_job or options.is_unique or track > 0
        guard, unused = guard_of(options, self._pool, timeout)
        has_end = policy.retry_until is not None or options.expires is not None
        about = read, is_object_job, options.is_unique, track, may_follow, guard, has_end
        return Plan(asked, handler, policy, policy.to_text(), timeout, warning or unused, *about)

    def _find(self, name: str) -> Handler | None:
        try:
            return self._registry.find(name)
        except UnknownJob:
            return None
