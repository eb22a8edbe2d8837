"""How the jobs of one kind run: looked up once for all that have the same name and payload options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from queuepool.config.settings import PoolSettings
from queuepool.config.values import LONGEST
from queuepool.errors import ResultTooLarge, UnknownJob
from queuepool.jobs.arguments import Reader, reader_of
from queuepool.jobs.current_job import Current
from queuepool.jobs.job_options import Options, Retry
from queuepool.jobs.limits import Limit
from queuepool.jobs.registry import Handler, Registry
from queuepool.payload.envelope import OBJECT_JOB, Payload
from queuepool.payload.lease import Unlock
from queuepool.payload.members import REPORT, MemberOf
from queuepool.payload.options import PayloadOptions
from queuepool.settlement.states import result_of
from queuepool.settlement.verdict import Backoff, Locks, Policy, Retryable
from queuepool.worker.invoker import Invoker
from queuepool.worker.reports import REPORTS

#: most plans that a worker keeps
_MOST = 256
#: seconds by which a job must end before its lease, if leases are not renewed
_MARGIN = 1.0


class Guard(NamedTuple):
    """What a handler needs beyond a plain call: a soft timeout, and rules for which exceptions are retried.

    ``soft_timeout`` in seconds, 0 = none.
    """

    soft_timeout: float
    retryable: Retryable
    #: by exception class; ``None`` = as for any other exception
    delays: Mapping[type[BaseException], Backoff | None] = MappingProxyType({})
    #: whether another member of the job's flow takes what it returns
    keeps: bool = False

    def call(self, invoker: Invoker, run: Callable[[], object], job: Current) -> object:
        """Call the handler, and note on the job whether and when it is retried. Raises whatever it raises."""
        try:
            return self.kept(invoker.call_within(run, self.soft_timeout), job)
        except BaseException as error:
            # Judged here, since what is raised before the call, such as an outage, is not the handler's error.
            self.judge(error, job)
            raise

    def kept(self, returned: object, job: Current) -> object:
        """What the handler has returned, kept if it is to be. Raises ``ResultTooLarge``."""
        if self.keeps and not job.run.cancelled:
            result, problem = result_of(returned)
            if problem:
                raise ResultTooLarge(job.name, problem)
            job.run = job.run._replace(result=result)
        return returned

    def judge(self, error: BaseException, job: Current) -> None:
        """Note on the job whether and when it is retried after what its handler has raised."""
        job.is_final = self.retryable.excludes(error) and not isinstance(error, Retry)
        if job.retry_after is None:  # else its middleware has set it
            job.retry_after = self._delay(error, job)

    def _delay(self, error: BaseException, job: Current) -> float | None:
        """Seconds until the next try, if the exception's nearest class in ``delays`` has its own backoff."""
        named = (one for one in type(error).__mro__ if one in self.delays)
        backoff = self.delays[first] if (first := next(named, None)) else None
        return backoff.after(job.attempts, job.id) if backoff else None


class Plan(NamedTuple):
    """How the jobs of one name, with the same options in their payloads, run.

    ``handler`` is ``None`` if none is registered under the name; ``timeout`` in seconds, 0 = no limit.
    """

    #: kept alive, since plans are found by its identity
    options: PayloadOptions
    handler: Handler | None
    policy: Policy
    #: the policy as it is written on the board
    text: str
    timeout: float
    warning: str
    #: converts the arguments, if the handler's annotations need more than plain JSON
    read: Reader | None = None
    #: whether Laravel may expect more than a call of the handler
    is_object_job: bool = False
    #: whether the handler declares more about the job's unique lock than the payload holds
    is_unique: bool = False
    #: seconds that the job's state is kept after its end; 0 = it is not tracked
    track: float = 0.0
    #: whether anything may follow from the end of these jobs, as far as is known without their context
    may_follow: bool = False
    #: ``None`` = a plain call of its handler
    guard: Guard | None = None
    #: whether the job can expire (``expires``, ``retryUntil``), so that the store's clock must be read
    has_end: bool = False
    #: whether the store is asked before the job begins
    asks: bool = False
    #: the unique locks to release before the job runs; only in the plan of one job
    unlocks: tuple[Unlock, ...] = ()
    #: what the job must wait for before it begins
    limits: tuple[Limit, ...] = ()
    #: whether the jobs are members of flows
    is_member: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether its handler is a plain function, which blocks the thread in which it is called."""
        return self.handler is not None and not self.handler.is_async

    def with_locks(self, locks: Locks, unlocks: tuple[Unlock, ...] = ()) -> Plan:
        """The plan with these unique locks in its policy, and those to release before the job runs."""
        policy = replace(self.policy, locks=locks)
        return self._replace(policy=policy, text=policy.to_text(), unlocks=unlocks, asks=self.asks or bool(unlocks))

    def limited_by(self, limit: Limit) -> Plan:
        """The plan for a job whose queue has this limit."""
        return self._replace(limits=(*self.limits, limit), asks=True, may_follow=True)

    def in_flow(self, *, is_taken: bool) -> Plan:
        """The plan for members of flows; ``is_taken``: others take their results."""
        guard = self.guard
        if is_taken:
            guard = (guard or Guard(0.0, Retryable()))._replace(keeps=True)
        return self._replace(is_member=True, may_follow=True, asks=True, guard=guard)


class Plans:
    """One worker's plans, each made once."""

    def __init__(self, pool: PoolSettings, registry: Registry) -> None:
        self._pool = pool
        self._registry = registry
        self._known: dict[tuple[int, str], Plan] = {}
        #: by the identity of the usual plan, which the pair keeps alive, and whether results are taken
        self._in_flows: dict[tuple[int, bool], tuple[Plan, Plan]] = {}

    def of(self, payload: Payload) -> Plan:
        """The plan for this payload; made once, then cached."""
        # By the identity of the options, which the plan keeps alive: comparing their values would take longer.
        key = id(payload.options), payload.name
        plan = self._known.get(key)
        if plan is None:
            if len(self._known) == _MOST:
                self._known.clear()
            plan = self._known[key] = self._made(payload.options, payload.name)
        return plan

    def in_flow(self, plan: Plan, member: MemberOf) -> Plan:
        """The plan for a member of a flow; the same one for all that are alike, as a worker compares it."""
        key = id(plan), member.is_taken
        if key not in self._in_flows:
            if len(self._in_flows) == _MOST:
                self._in_flows.clear()
            self._in_flows[key] = plan, plan.in_flow(is_taken=member.is_taken)
        return self._in_flows[key][1]

    def _made(self, asked: PayloadOptions, name: str) -> Plan:
        handler = self._find(name)
        options = handler.options if handler else Options()
        timeout, warning = timeout_of(asked, options, self._pool)
        policy = policy_of(asked, options, self._pool)
        guard, unused = guard_of(options, self._pool, timeout)
        usual = options.track or self._pool.track or asked.usual_track or 0.0
        track = usual if asked.track is None else asked.track
        is_object_job = asked.job == OBJECT_JOB
        has_end = policy.retry_until is not None or options.expires is not None
        return Plan(
            asked,
            handler,
            policy,
            policy.to_text(),
            timeout,
            warning or unused,
            read=reader_of(name, handler.target) if handler and handler.target else None,
            is_object_job=is_object_job,
            is_unique=options.is_unique,
            track=track,
            may_follow=is_object_job or options.is_unique or track > 0 or name == REPORT or bool(options.limits),
            guard=guard,
            has_end=has_end,
            asks=has_end or bool(options.limits),
            limits=options.limits,
        )

    def _find(self, name: str) -> Handler | None:
        if name == REPORT:
            return REPORTS
        try:
            return self._registry.find(name)
        except UnknownJob:
            return None


def policy_of(terms: PayloadOptions, options: Options, pool: PoolSettings) -> Policy:
    """How often and until when this job may be tried: by its payload, else its handler, else its pool.

    A ``maxTries`` that differs from the handler's was set by Laravel or a person, and means what it means in Laravel.
    """
    return Policy(
        tries=_first(terms.max_tries, options.tries, pool.tries),
        max_exceptions=_first(terms.max_exceptions, options.max_exceptions, None),
        backoff=_first(terms.backoff, options.backoff, pool.backoff),
        # Other delays in the payload were set by Laravel or a person, and are kept exactly.
        jitter=options.jitter and terms.backoff in (None, options.backoff),
        retry_until=terms.retry_until,
        fail_on_timeout=terms.fail_on_timeout or bool(options.fail_on_timeout),
        max_crashes=pool.max_crashes,
        counts_deaths=terms.max_tries is not None and terms.max_tries != options.tries,
    )


def timeout_of(terms: PayloadOptions, options: Options, pool: PoolSettings) -> tuple[float, str]:
    """Seconds this attempt may run (0 = no limit), and a warning if that is less than the job asks for."""
    own = _first(terms.timeout, options.timeout, None)
    timeout, warning = cut(pool.timeout if own is None else own, pool)
    return timeout, "" if own is None else warning


def cut(timeout: float, pool: PoolSettings) -> tuple[float, str]:
    """The timeout, shortened to what this pool can grant, and a warning if it was shortened."""
    # No timer goes further: a payload that asks for 292 years or more would crash its worker.
    wanted = min(timeout, LONGEST)
    if pool.connection.renew:
        return wanted, ""
    most = max(pool.connection.retry_after - pool.grace - _MARGIN, 1.0)
    if 0 < wanted <= most:
        return wanted, ""
    lasts = f"leases last {pool.connection.retry_after:g} and renew is off"
    return most, f"timeout {wanted:g} is cut to {most:g}: {lasts}"


def _first(payloads: Any, handlers: Any, pools: Any) -> Any:
    if payloads is not None:
        return payloads
    return pools if handlers is None else handlers


def guard_of(options: Options, pool: PoolSettings, timeout: float) -> tuple[Guard | None, str]:
    """The guard of a job with this ``timeout``, and a warning if its own soft timeout is never reached."""
    soft, warning = soft_timeout_of(options, pool, timeout)
    retryable = Retryable(options.retry_on, options.fail_on)
    is_plain = not soft and retryable == Retryable() and not options.delays
    return None if is_plain else Guard(soft, retryable, dict(options.delays)), warning


def soft_timeout_of(options: Options, pool: PoolSettings, timeout: float) -> tuple[float, str]:
    """Seconds after which the handler gets ``SoftTimeout`` (0 = never), and the warning."""
    soft = pool.soft_timeout if options.soft_timeout is None else options.soft_timeout
    if not soft or not timeout or soft < timeout:
        return soft, ""
    if options.soft_timeout is None:
        return 0.0, ""  # the pool's soft timeout is meant for jobs with the pool's timeout
    return 0.0, f"soft_timeout {soft:g} is not below its timeout, {timeout:g}: it is never reached"
