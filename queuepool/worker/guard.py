"""A call of a handler that has a soft timeout, or whose exceptions are not all retried alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from queuepool.config.settings import PoolSettings
from queuepool.jobs.current_job import Current
from queuepool.jobs.job_options import Options
from queuepool.jobs.retry import Retry
from queuepool.settlement.backoff import Backoff
from queuepool.settlement.verdict import Retryable
from queuepool.worker.invoker import Invoker


class Guard(NamedTuple):
    """``soft_timeout`` in seconds, 0 = none."""

    soft_timeout: float
    retryable: Retryable
    #: by class; ``None`` = as for any other exception
    delays: Mapping[type[BaseException], Backoff | None] = MappingProxyType({})

    def call(self, invoker: Invoker, run: Callable[[], object], job: Current) -> object:
        """Call the handler, and note on the job whether and when it is retried. Raises whatever it raises."""
        try:
            return invoker.call_within(run, self.soft_timeout)
        except BaseException as error:
            # Judged here: what is raised before the handler is called, such as an outage, is not the handler's.
            job.is_final = self.retryable.excludes(error) and not isinstance(error, Retry)
            job.retry_after = self._delay(error, job)
            raise

    def _delay(self, error: BaseException, job: Current) -> float | None:
        """Seconds until the next try if the nearest named class of the exception has a delay of its own."""
        named = (one for one in type(error).__mro__ if one in self.delays)
        backoff = self.delays[first] if (first := next(named, None)) else None
        return backoff.after(job.attempts, job.id) if backoff else None


def guard_of(options: Options, pool: PoolSettings, timeout: float) -> tuple[Guard | None, str]:
    """The guard of a job with this ``timeout``, and a warning if its own soft timeout is never reached."""
    soft, warning = soft_timeout_of(options, pool, timeout)
    retryable = Retryable(options.retry_on, options.fail_on)
    is_plain = not soft and retryable == Retryable() and not options.delays
    return None if is_plain else Guard(soft, retryable, dict(options.delays)), warning


def soft_timeout_of(options: Options, pool: PoolSettings, timeout: float) -> tuple[float, str]:
    """Seconds after which the handler gets ``SoftTimeout``, 0 = never, and that warning."""
    soft = pool.soft_timeout if options.soft_timeout is None else options.soft_timeout
    if not soft or not timeout or soft < timeout:
        return soft, ""
    if options.soft_timeout is None:
        return 0.0, ""  # the pool's is meant for jobs with the pool's timeout
    return 0.0, f"soft_timeout {soft:g} is not below its timeout, {timeout:g}: it is never reached"
