"""Which setting counts: the payload's, else its handler's, else its pool's."""

from __future__ import annotations

from typing import Any

from queuepool.config.settings import PoolSettings
from queuepool.config.values import LONGEST
from queuepool.jobs.job_options import Options
from queuepool.payload.options import PayloadOptions
from queuepool.settlement.verdict import Policy

#: without renewal a job must end before its lease; seconds in between
_MARGIN = 1.0


def policy_of(terms: PayloadOptions, options: Options, pool: PoolSettings) -> Policy:
    """How often and until when this job may be tried.

    A ``maxTries`` that differs from the handler's came from Laravel or a person, and means what it means in Laravel.
    """
    return Policy(
        tries=_first(terms.max_tries, options.tries, pool.tries),
        max_exceptions=_first(terms.max_exceptions, options.max_exceptions, None),
        backoff=_first(terms.backoff, options.backoff, pool.backoff),
        # Other delays in the payload are Laravel's or a person's, and exact.
        jitter=options.jitter and terms.backoff in (None, options.backoff),
        retry_until=terms.retry_until,
        fail_on_timeout=terms.fail_on_timeout or bool(options.fail_on_timeout),
        max_crashes=pool.max_crashes,
        counts_deaths=terms.max_tries is not None and terms.max_tries != options.tries,
    )


def timeout_of(terms: PayloadOptions, options: Options, pool: PoolSettings) -> tuple[float, str]:
    """Seconds this attempt may run (0 = no limit), and a warning if that is less than the job itself wants."""
    own = _first(terms.timeout, options.timeout, None)
    timeout, warning = cut(pool.timeout if own is None else own, pool)
    return timeout, "" if own is None else warning


def cut(timeout: float, pool: PoolSettings) -> tuple[float, str]:
    """The timeout as far as this pool can keep it, and a warning if that is less."""
    # No timer goes beyond: a payload that asks for 292 years and more would end its worker.
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
