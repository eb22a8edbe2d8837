"""A job's options as the fields of Laravel's payload."""

from __future__ import annotations

from queuepool.jobs.job_options import Options
from queuepool.payload.expiry import EXPIRES
from queuepool.payload.tags import TAGS


class Wired(dict[str, object]):
    """Options as payload fields, checked where the job is defined."""


def backoff_text(delays: tuple[object, ...]) -> str:
    """Seconds, separated by commas. Source: Queue.php, getJobBackoff (13.x)."""
    return ",".join(f"{delay:.15g}" if isinstance(delay, float) else str(delay) for delay in delays)


def wire(options: Options) -> Wired:
    """As Laravel's payload fields, so that PHP workers respect them. Source: Queue.php, createPayloadArray (13.x)."""
    backoff = options.backoff and backoff_text(options.backoff)
    tags = {TAGS: list(options.tags)} if options.tags else {}
    ends = {EXPIRES: options.expires} if options.expires else {}
    return Wired(
        {
            "maxTries": options.tries,
            "maxExceptions": options.max_exceptions,
            "failOnTimeout": bool(options.fail_on_timeout),
            "backoff": backoff,
            "timeout": options.timeout,
            **tags,
            **ends,
        }
    )
