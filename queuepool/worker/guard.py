"""A call of a handler that has a soft timeout, or not all of whose exceptions may be retried."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from queuepool.config.settings import PoolSettings
from queuepool.jobs.current_job import Current
from queuepool.jobs.job_options import Options
from queuepool.settlement.verdict import Retryable
from queuepool.worker.invoker import Invoker


class Guard(NamedTuple):
    """``soft_timeout`` in seconds, 0 = none."""

    soft_timeout: float
    retryable: Retryable

    def call(self, invoker: Invoker, run: Callable[[], object], job: Current) -> object:
        """Call the handler, and note on the job whether what it raises may be retried. Raises whatever it raises."""
        try:
            return invoker.call_within(run, self.soft_timeout)
        except BaseException as error:
            # Judged here: what is raised before the handler is called, such as an outage, is not the handler's.
            job.is_final = self.retryable.excludes(error)
            raise


def guard_of(options: Options, pool: PoolSettings, timeout: float) -> tuple[Guard | None, str]:
    """The guard of a job with this ``timeout``, and a warning if its own soft timeout is never reached."""
    soft, warning = soft_timeout_of(options, pool, timeout)
    retryable = Retryable(options.retry_on, options.fail_on)
    return Guard(soft, retryable) if soft or retryable != Retryable() else None, warning


def soft_timeout_of(options: Options, pool: PoolSettings, timeout: float) -> tuple[float, str]:
    """Seconds after which the handler gets ``SoftTimeout``, 0 = never, and that warning."""
    soft = pool.soft_timeout if options.soft_timeout is None else options.soft_timeout
    if not soft or not timeout or soft < timeout:
        return soft, ""
    if options.soft_timeout is None:
        return 0.0, ""  # the pool's is meant for jobs with the pool's timeout
    return 0.0, f"soft_timeout {soft:g} is not below its timeout, {timeout:g}: it is never reached"
