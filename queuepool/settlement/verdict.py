"""The verdict on an attempt, and the delay of a retry: pure functions of facts. ``Settler`` carries verdicts out.

Those who follow a job get what else is known of the attempt (``Run``).
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, NamedTuple

from queuepool.errors import (
    CLOSURE,
    BadArguments,
    JobError,
    JobExpired,
    NoTriesLeft,
    TimedOut,
    TooManyAttempts,
    UnknownJob,
    WorkerDied,
)
from queuepool.payload.lease import Tallies
from queuepool.payload.members import MemberEnd, NewMember

#: for a job that the worker's code does not know: most seconds between two tries, and most tries if it has no limit
_LONGEST_WAIT, _MOST_TRIES = 3600.0, 10


@dataclass(frozen=True, slots=True)
class Delete:
    """The job is done: remove it."""


@dataclass(frozen=True, slots=True)
class Release:
    """Retry the job in ``delay`` seconds. Unless it ``uses_try``, the attempt does not count."""

    delay: float
    uses_try: bool = True


@dataclass(frozen=True, slots=True)
class Fail:
    """The job has failed for good; ``error`` goes to the failed store."""

    error: BaseException


Verdict = Delete | Release | Fail
#: names of the unique locks that a worker knows its job to hold; ``None`` = as the payload says
Locks = tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How often and until when one job may be tried: its own options, else its pool's.

    ``backoff`` is in seconds, ``retry_until`` in Unix seconds; 0 ``tries`` or ``max_crashes`` = no limit.
    """

    tries: int = 1
    max_exceptions: int | None = None
    backoff: tuple[float, ...] = (0.0,)
    #: whether each delay is shortened at random
    jitter: bool = False
    retry_until: float | None = None
    fail_on_timeout: bool = False
    max_crashes: int = 3
    #: whether every attempt uses up a try, even if its worker or host died, as in Laravel
    counts_deaths: bool = False
    locks: Locks = None

    @property
    def max_attempts(self) -> float:
        """How often the job may begin, counting all its tries and all forgiven deaths; infinity = no limit."""
        if self.tries == 0 or self.counts_deaths:
            return self.tries or inf
        return self.tries + self.max_crashes - 1 if self.max_crashes else inf

    def to_text(self) -> str:
        """JSON for the board, by which the steward rules on a dead worker's job. Only the first 100 delays are kept."""
        return json.dumps({**asdict(self), "backoff": [round(delay, 3) for delay in self.backoff[:100]]})

    @classmethod
    def from_text(cls, text: str) -> Policy:
        """The policy that ``to_text`` wrote. Raises ``ValueError`` or ``TypeError`` for any other text."""
        facts: dict[str, Any] = json.loads(text)
        locks = facts.get("locks")
        return cls(
            **{**facts, "backoff": tuple(facts.get("backoff", ())), "locks": None if locks is None else tuple(locks)}
        )


class Retryable(NamedTuple):
    """The exceptions of a handler after which its job may be retried; ``fail_on`` wins.

    Only workers know them: the steward, which rules on deaths, need not import the application's classes.
    """

    retry_on: tuple[type[BaseException], ...] = (BaseException,)
    fail_on: tuple[type[BaseException], ...] = ()

    def excludes(self, error: BaseException) -> bool:
        """Whether the job fails now, even if it has tries left."""
        return isinstance(error, self.fail_on) or not isinstance(error, self.retry_on)


ALL = Retryable()


def may_start(name: str, attempts: int, policy: Policy, now: float, suspicions: int = 0) -> Fail | None:
    """Rule on an attempt that has not begun; ``None`` lets it begin.

    ``attempts`` counts this one; ``now`` is the server's clock in Unix seconds. ``suspicions`` is the tally, where it
    is known; where it is not, an attempt that ended under suspicion is a death like any other.
    An attempt that ended was ruled on then. So an attempt after the last try follows attempts that were settled as
    deaths, or never settled because their host and its steward were lost.
    Source: Worker.php, markJobAsFailedIfAlreadyExceedsMaxAttempts (13.x).
    """
    if policy.retry_until is not None:
        return Fail(JobExpired(name)) if now > policy.retry_until else None
    if 0 < policy.tries < attempts and policy.max_attempts < attempts - (0 if policy.counts_deaths else suspicions):
        lost = 0 if policy.counts_deaths else attempts - policy.tries
        return Fail(TooManyAttempts(name, attempts, policy.tries, lost))
    return None


def judge(
    error: BaseException | None,
    attempts: int,
    policy: Policy,
    tallies: Tallies,
    now: float,
    *,
    is_final: bool = False,
    after: float | None = None,
    job_id: str = "",
    unknown_retry: float = 0.0,
) -> Verdict:
    """Rule on an attempt that has ended; the tallies do not yet count this one, and ``now`` is as for ``may_start``.

    ``is_final``: the job must not be retried after this error. ``after``: the seconds until the next try, if this
    error sets them. ``job_id`` decides on the jitter. ``unknown_retry``: seconds to wait for code that knows the job if
    this worker's does not, doubled with each attempt; 0 = do not wait.
    Source: Worker.php, markJobAsFailedIfWillExceedMaxAttempts and ...MaxExceptions (13.x).
    """
    if error is None:
        return Delete()
    if isinstance(error, JobError):
        if not unknown_retry or not _may_wait(error, attempts, policy):
            return Fail(error)
        after = _wait_after(attempts, unknown_retry)
    if is_final or _is_last(error, attempts, policy, tallies, now):
        return Fail(error)
    return Release(Backoff(policy.backoff, policy.jitter).after(attempts, job_id) if after is None else after)


def judge_suspect(error: BaseException, attempts: int, policy: Policy, now: float) -> Release | Fail:
    """Rule on an attempt that ended with its worker, which its job or another one beside it may have killed.

    It is tried again at once; the tally to raise is ``suspects``. A job that no worker may begin any more, not even
    Laravel's, fails now, while ``error`` still shows how the worker died.
    """
    if policy.retry_until is not None:
        is_over = now >= policy.retry_until
    else:
        is_over = policy.counts_deaths and 0 < policy.tries <= attempts
    return Fail(error) if is_over else Release(0.0)


def may_be_newer(error: BaseException) -> bool:
    """Whether a worker with newer code may be able to run the job of this error."""
    return isinstance(error, BadArguments) or (isinstance(error, UnknownJob) and error.name not in ("", CLOSURE))


def _may_wait(error: JobError, attempts: int, policy: Policy) -> bool:
    """Whether to wait for newer code; a job without any limit gets one."""
    has_limit = policy.tries or policy.retry_until is not None
    return not error.began and may_be_newer(error) and bool(has_limit or attempts < _MOST_TRIES)


def _wait_after(attempts: int, first: float) -> float:
    return min(first * 2.0 ** min(attempts - 1, _MOST_TRIES), max(first, _LONGEST_WAIT))


def judge_release(
    requested: Release, name: str, attempts: int, policy: Policy, tallies: Tallies, now: float
) -> Verdict:
    """Rule on a release that the handler asked for: a job that may not begin again fails now, not after its delay."""
    if policy.retry_until is not None:
        return Fail(JobExpired(name)) if now + requested.delay > policy.retry_until else requested
    if requested.uses_try and _is_last_try(attempts, policy, tallies):
        return Fail(NoTriesLeft(name, attempts, policy.tries))
    return requested


def needs_tallies(attempts: int, policy: Policy) -> bool:
    """Whether the verdict on a failed attempt depends on how earlier ones ended; to know costs a round trip."""
    return policy.max_exceptions is not None or (not policy.counts_deaths and 1 < policy.tries <= attempts)


def _is_last(error: BaseException, attempts: int, policy: Policy, tallies: Tallies, now: float) -> bool:
    died = isinstance(error, WorkerDied)
    if died and 0 < policy.max_crashes <= _deaths_before(attempts, policy, tallies) + 1:
        return True
    if isinstance(error, TimedOut) and policy.fail_on_timeout:
        return True
    if not died and policy.max_exceptions is not None and policy.max_exceptions <= tallies.exceptions + 1:
        return True
    if policy.retry_until is not None:
        return now >= policy.retry_until
    if died and not policy.counts_deaths:
        return False
    return _is_last_try(attempts, policy, tallies)


def _is_last_try(attempts: int, policy: Policy, tallies: Tallies) -> bool:
    """For an attempt that did not end with its worker."""
    forgiven = 0 if policy.counts_deaths else tallies.crashes + tallies.suspects
    return 0 < policy.tries <= attempts - forgiven


def _deaths_before(attempts: int, policy: Policy, tallies: Tallies) -> int:
    """The deaths that were settled, or more if only they explain so many attempts beyond the tries."""
    if policy.tries == 0 or policy.counts_deaths:
        return tallies.crashes
    return max(tallies.crashes, attempts - tallies.suspects - policy.tries)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays before the next try, in seconds: the n-th one after the n-th attempt, then always the last one."""

    delays: tuple[float, ...] = ()
    #: whether each is shortened, to no less than its half, so that jobs that failed together do not return together
    jitter: bool = False

    def after(self, attempts: int, job_id: str) -> float:
        """Seconds to wait after this attempt at this job."""
        delay = delay_after(attempts, self.delays)
        return shortened(delay, job_id, attempts) if self.jitter else delay


def delay_after(attempts: int, backoff: tuple[float, ...]) -> float:
    """Seconds to wait after the n-th attempt: the n-th delay, or the last one.

    Source: Worker.php, calculateBackoff (13.x).
    """
    if not backoff:
        return 0.0
    return backoff[min(attempts, len(backoff)) - 1] if attempts > 0 else backoff[0]


def shortened(delay: float, job_id: str, attempts: int) -> float:
    """Between half of the delay and the whole, to the millisecond.

    The job's id decides, not a random number: a repeated verdict is the same in any process, and a job that calls
    ``random.seed`` cannot make all jobs wait equally long.
    """
    share = zlib.crc32(f"{job_id}:{attempts}".encode("utf-8", "replace")) / 2**32
    return round(delay * (1 + share) / 2, 3)


class RanBy(NamedTuple):
    """The worker that ran an attempt: its pid, its number, and its code: of which generation of a pool that began when.

    ``pool_since`` is in Unix seconds.
    """

    pid: int
    worker: int
    generation: int
    pool_since: float | None = None


class Run(NamedTuple):
    """What is known of an attempt that has begun."""

    #: Unix seconds
    began: float | None = None
    progress: float | None = None
    note: str = ""
    #: the value that the handler returned, as JSON; empty if there is none to keep
    result: str = ""
    #: why the result is not kept
    result_problem: str = ""
    #: why the job was skipped
    cancelled: str = ""
    #: whether it has skipped itself, by its middleware: in its flow, it is done
    is_skipped: bool = False
    #: whether it was skipped since its flow was stopped
    is_left_out: bool = False
    #: what it has added to its flow
    children: tuple[NewMember, ...] = ()
    #: which member of a flow has ended in PHP, if the job reports that
    reports: MemberEnd | None = None
    #: when it ended, in Unix seconds; ``None`` if no process saw it
    ended: float | None = None
    #: ``None``: this process
    by: RanBy | None = None


NOT_RUN = Run()
