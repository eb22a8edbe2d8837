"""What becomes of an attempt: one pure ruling on facts, carried out elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from queuepool.errors import JobError, JobExpired, JobTimedOut, NoTriesLeft, TooManyAttempts, WorkerDied
from queuepool.payload.lease import Tallies


@dataclass(frozen=True, slots=True)
class Delete:
    """It is done."""


@dataclass(frozen=True, slots=True)
class Release:
    """Try again in ``delay`` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class Fail:
    """It is over; ``error`` goes into the failed store."""

    error: BaseException


Verdict = Delete | Release | Fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How often and until when one job may be tried: its own wishes over its pool's."""

    tries: int = 1
    max_exceptions: int | None = None
    backoff: tuple[float, ...] = (0.0,)
    retry_until: float | None = None
    fail_on_timeout: bool = False
    max_crashes: int = 3
    #: as in Laravel: an attempt uses up a try however it ended, also by the death of its worker or host
    counts_deaths: bool = False

    @property
    def most_attempts(self) -> float:
        """How often it may begin: with all tries failed, and as many deaths in between as it is forgiven."""
        if self.tries == 0 or self.counts_deaths:
            return self.tries or inf
        return self.tries + self.max_crashes - 1 if self.max_crashes else inf

    def to_text(self) -> str:
        """JSON for the board: whoever buries a worker rules by its job's policy. A very long backoff is cut."""
        return json.dumps({**asdict(self), "backoff": [round(delay, 3) for delay in self.backoff[:100]]})

    @classmethod
    def from_text(cls, text: str) -> Policy:
        """Raises ``ValueError`` and ``TypeError`` for what ``to_text`` has not written."""
        facts: dict[str, Any] = json.loads(text)
        return cls(**{**facts, "backoff": tuple(facts.get("backoff", ()))})


def may_start(name: str, attempts: int, policy: Policy, now: float) -> Fail | None:
    """Rule on an attempt that has not begun; ``attempts`` counts this one, ``now`` is the server's clock.

    An attempt that failed by itself was ruled on as it ended. So one that begins after the last try follows others that
    nobody settled, since their host was lost with its steward, or that were settled as deaths.
    Source: Worker.php, markJobAsFailedIfAlreadyExceedsMaxAttempts (13.x).
    """
    if policy.retry_until is not None:
        return Fail(JobExpired(name)) if now > policy.retry_until else None
    if 0 < policy.tries < attempts and policy.most_attempts < attempts:
        lost = 0 if policy.counts_deaths else attempts - policy.tries
        return Fail(TooManyAttempts(name, attempts, policy.tries, lost))
    return None


def judge(error: BaseException | None, attempts: int, policy: Policy, tallies: Tallies, now: float) -> Verdict:
    """Rule on an attempt that has ended; the tallies do not count this one yet.

    Source: Worker.php, markJobAsFailedIfWillExceedMaxAttempts and ...MaxExceptions (13.x).
    """
    if error is None:
        return Delete()
    if isinstance(error, JobError) or _is_last(error, attempts, policy, tallies, now):
        return Fail(error)
    return Release(delay_after(attempts, policy.backoff))


def judge_release(asked: Release, name: str, attempts: int, policy: Policy, tallies: Tallies, now: float) -> Verdict:
    """Rule on a release that the handler asked for: one that could not begin again fails now, not after its delay."""
    if policy.retry_until is not None:
        return Fail(JobExpired(name)) if now + asked.delay > policy.retry_until else asked
    if _is_last_try(attempts, policy, tallies):
        return Fail(NoTriesLeft(name, attempts, policy.tries))
    return asked


def needs_tallies(attempts: int, policy: Policy) -> bool:
    """Whether the ruling on an attempt that failed rests on how the earlier ones ended: that is a question more."""
    return policy.max_exceptions is not None or (not policy.counts_deaths and 1 < policy.tries <= attempts)


def _is_last(error: BaseException, attempts: int, policy: Policy, tallies: Tallies, now: float) -> bool:
    died = isinstance(error, WorkerDied)
    if died and 0 < policy.max_crashes <= _deaths_before(attempts, policy, tallies) + 1:
        return True
    if isinstance(error, JobTimedOut) and policy.fail_on_timeout:
        return True
    if not died and policy.max_exceptions is not None and policy.max_exceptions <= tallies.exceptions + 1:
        return True
    if policy.retry_until is not None:
        return now >= policy.retry_until
    if died and not policy.counts_deaths:
        return False
    return _is_last_try(attempts, policy, tallies)


def _is_last_try(attempts: int, policy: Policy, tallies: Tallies) -> bool:
    """Of an attempt that its job has ended itself."""
    forgiven = 0 if policy.counts_deaths else tallies.crashes
    return 0 < policy.tries <= attempts - forgiven


def _deaths_before(attempts: int, policy: Policy, tallies: Tallies) -> int:
    """Those that were settled, or as many as there must have been for it to come so far beyond its tries."""
    if policy.tries == 0 or policy.counts_deaths:
        return tallies.crashes
    return max(tallies.crashes, attempts - policy.tries)


def delay_after(attempts: int, backoff: tuple[float, ...]) -> float:
    """The n-th delay after the n-th attempt, the last one from then on.

    Source: Worker.php, calculateBackoff (13.x).
    """
    if not backoff:
        return 0.0
    return backoff[min(attempts, len(backoff)) - 1] if attempts > 0 else backoff[0]
