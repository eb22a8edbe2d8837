"""How long a job waits before its next try: plain delays, and the jitter that spreads jobs that failed together."""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: the n-th one after the n-th attempt, then the last one."""

    delays: tuple[float, ...] = ()
    #: whether each is shortened by chance, to no less than its half
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

    The job's id decides and no random number: a verdict that is repeated is the same one, in whichever process, and no
    ``random.seed`` of a job's makes all jobs wait alike.
    """
    share = zlib.crc32(f"{job_id}:{attempts}".encode("utf-8", "replace")) / 2**32
    return round(delay * (1 + share) / 2, 3)
