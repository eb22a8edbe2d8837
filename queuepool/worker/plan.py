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
        return Plan(asked, handler, policy, policy.to_text(), timeout, warning, read, is_object_job, options.is_unique)

    def _find(self, name: str) -> Handler | None:
        try:
            return self._registry.find(name)
        except UnknownJob:
            return None
