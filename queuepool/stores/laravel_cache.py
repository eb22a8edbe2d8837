"""What Laravel's job middleware keeps in its cache: locks, and counters of uses with the timers of their windows.

Source: Queue/Middleware/WithoutOverlapping.php, Cache/RateLimiter.php (13.x).
"""

from __future__ import annotations

from typing import NamedTuple

from queuepool.payload.lease import Lock, Unlock
from queuepool.stores.locks import Locks
from queuepool.stores.values import Values


class LaravelCache(NamedTuple):
    """Laravel's cache; names are those that it knows, without ``prefix``. Raises ``StoreError``."""

    locks: Locks
    values: Values
    prefix: str

    def take(self, name: str, owner: str, seconds: float) -> bool:
        """As ``Locks.take``."""
        return self.locks.take(Lock(name, owner, seconds))

    def release(self, name: str, owner: str) -> None:
        """Release a lock, if this owner has it."""
        self.locks.release([Unlock(name, owner)])

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        """As ``Values.count_use``."""
        return self.values.count_use(self.prefix + name, most, seconds)

    def forget_uses(self, name: str) -> None:
        """Begin a new window with the next use."""
        for key in (name, f"{name}:timer"):
            self.values.remove(self.prefix + key)
