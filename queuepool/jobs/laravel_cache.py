"""How the jobs of this process reach Laravel's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from queuepool.errors import QueuepoolError

if TYPE_CHECKING:
    from queuepool.stores.laravel_cache import LaravelCache

Opener = Callable[[], "LaravelCache"]
_open: Opener | None = None


def set_cache(open_cache: Opener | None) -> Opener | None:
    """Called by the worker: how its jobs reach the cache, from any thread. Returns how they did before."""
    global _open
    former, _open = _open, open_cache
    return former


def laravel_cache() -> LaravelCache:
    """Laravel's cache. Raises ``QueuepoolError`` outside of a worker."""
    if _open is None:
        raise QueuepoolError("no worker runs in this process: in a test, use run_now() of queuepool.testing")
    return _open()
