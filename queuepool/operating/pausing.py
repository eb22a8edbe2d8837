"""Pauses queues on all hosts, and lets them continue."""

from __future__ import annotations

from contextlib import suppress

from queuepool.errors import StoreDenied
from queuepool.stores.factory import Stores


def pause_queue(stores: Stores, queue: str, by: str) -> tuple[float, str] | None:
    """Pause it. If it is paused already, nothing is done: returns since when (Unix seconds), and by whom."""
    with suppress(StoreDenied):  # a Redis user who may not read Laravel's keys
        if before := stores.control.read([queue]).pauses.get(queue):
            return before
    stores.control.pause(queue, stores.queue.now(), by)
    return None
