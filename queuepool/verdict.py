"""What becomes of an attempt: one pure ruling on facts, carried out elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from queuepool.errors import JobError, JobExpired, JobTimedOut, TooManyAttempts, WorkerDied


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

    def to_text(self) -> str:
        """JSON for the board: whoever buries a worker rules by its job's policy. A very long backoff is cut."""
        return json.dumps({**asdict(self), "backoff": [round(delay, 3) for delay in self.backoff[:100]]})

    @classmethod
    def from_text(cls, text: str) -> Policy:
        """Raises ``ValueError`` and ``TypeError`` for what ``to_text`` has not written."""
        facts: dict[str, Any] = json.loads(text)
        return cls(**{**facts, "backoff": tuple(facts.get("backoff", ()))})


@dataclass(frozen=True, slots=True)
class Tallies:
    """Exceptions raised and workers killed in the job's earlier attempts."""

    exceptions: int = 0
    crashes: int = 0


def may_start(name: str, attempts: int, policy: Policy, now: float) -> Fail | None:
    """Rule on an attempt that has not begun; ``attempts`` counts this one, ``now`` is the server's clock.

    Source: Worker.php, markJobAsFailedIfAlreadyExceedsMaxAttempts (13.x).
    """
    if policy.retry_until is not None:
        return Fail(JobExpired(name)) if now > policy.retry_until else None
    if 0 < policy.tries < attempts:
        return Fail(TooManyAttempts(name, attempts, policy.tries))
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


def _is_last(error: BaseException, attempts: int, policy: Policy, tallies: Tallies, now: float) -> bool:
    if isinstance(error, WorkerDied) and 0 < policy.max_crashes <= tallies.crashes + 1:
        return True
    if isinstance(error, JobTimedOut) and policy.fail_on_timeout:
        return True
    if policy.max_exceptions is not None and policy.max_exceptions <= tallies.exceptions + 1:
        return True
    if policy.retry_until is not None:
        return now >= policy.retry_until
    return 0 < policy.tries <= attempts


def delay_after(attempts: int, backoff: tuple[float, ...]) -> float:
    """The n-th delay after the n-th attempt, the last one from then on.

    Source: Worker.php, calculateBackoff (13.x).
    """
    if not backoff:
        return 0.0
    return backoff[min(attempts, len(backoff)) - 1] if attempts > 0 else backoff[0]
