"""What Laravel's job middleware keeps in its cache: locks, and counters of uses with the timers of their windows.

Source: Queue/Middleware/WithoutOverlapping.php and RateLimitedWithRedis.php, Cache/RateLimiter.php,
Redis/Limiters/DurationLimiter.php (13.x).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from queuepool.payload.lease import Lock, Unlock
from queuepool.stores.locks import Locks
from queuepool.stores.values import Values


class Uses(Protocol):
    """Uses of names, counted in windows of time. Raises ``StoreError``."""

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        """Count a use in the current window of ``seconds``; seconds until its end if it has ``most`` uses.

        ``seconds`` 0 = count none, and begin no window.
        """

    def forget_uses(self, name: str) -> None:
        """Begin a new window with the next use."""


class LaravelCache(NamedTuple):
    """Laravel's cache, with ``Uses`` of its own; names are those that it knows, without ``prefix``.

    Raises ``StoreError``.
    """

    locks: Locks
    values: Values
    prefix: str
    #: the windows of Laravel's duration limiters, in Redis beside its queues; ``None``: the jobs are in a database
    durations: Uses | None = None

    def take(self, name: str, owner: str, seconds: float) -> bool:
        """As ``Locks.take``."""
        return self.locks.take(Lock(name, owner, seconds))

    def release(self, name: str, owner: str) -> None:
        """Release a lock, if this owner has it."""
        self.locks.release([Unlock(name, owner)])

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        """As ``Uses.count_use``."""
        return self.values.count_use(self.prefix + name, most, seconds)

    def forget_uses(self, name: str) -> None:
        """As ``Uses.forget_uses``."""
        for key in (name, f"{name}:timer"):
            self.values.remove(self.prefix + key)
