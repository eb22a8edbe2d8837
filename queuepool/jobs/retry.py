"""``Retry``: raised by a handler that wants another try, at a time of its own."""

from __future__ import annotations

from queuepool.errors import QueuepoolError
from queuepool.jobs.delay import Delay, seconds_until


class Retry(QueuepoolError):
    """The job is to be tried again ``after`` this delay; by default after its backoff.

    It counts as any exception does: it uses up a try, and in the last one the job fails with it. ``retry_on`` and
    ``fail_on`` say nothing about it. Write ``raise Retry(after="30s") from error`` to keep why. Raises ``ValueError``
    for what is no delay.
    """

    def __init__(self, reason: str = "", *, after: Delay | None = None) -> None:
        self.after = None if after is None else seconds_until(after)
        when = "later" if self.after is None else f"in {self.after:g} s"
        super().__init__(reason or f"the handler asks for another try {when}")
