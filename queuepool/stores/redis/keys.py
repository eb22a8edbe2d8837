"""Every key in one place: Laravel's under ``queues:``, ours under ``queuepool:``."""

from __future__ import annotations


class Keys:
    """The keys of a connection with this prefix. Source: RedisQueue.php, getQueue (13.x)."""

    def __init__(self, prefix: str = "") -> None:
        self._queues = f"{prefix}queues:"
        self._ours = f"{prefix}queuepool:"
        self.failed = f"{self._ours}failed"
        self.failed_times = f"{self._ours}failed:times"
        self.pending = f"{self._ours}failed:pending"
        self.pending_times = f"{self._ours}failed:pending:times"
        self.workers = f"{self._ours}workers"
        self.tags = f"{self._ours}tags"
        self.pools = f"{self._ours}pools"
        self.down = f"{self._ours}down"

    def ready(self, queue: str) -> str:
        return f"{self._queues}{queue}"

    def delayed(self, queue: str) -> str:
        return f"{self._queues}{queue}:delayed"

    def reserved(self, queue: str) -> str:
        return f"{self._queues}{queue}:reserved"

    def notify(self, queue: str) -> str:
        return f"{self._queues}{queue}:notify"

    def quarantine(self, queue: str) -> str:
        return f"{self._ours}quarantine:{queue}"

    def channel(self, queue: str) -> str:
        """Where stewards hear of jobs that are due sooner than they know."""
        return f"{self._ours}due:{queue}"

    def tallies(self, job_id: str) -> str:
        return f"{self._ours}tallies:{job_id}"
