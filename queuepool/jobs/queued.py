"""The event of a push."""

from __future__ import annotations

from collections.abc import Iterable

from queuepool.events.listeners import LISTENERS


def emit_queued(pushed: Iterable[tuple[str, str]], queue: str, delay: float) -> None:
    """``JobQueued`` for each id and name; nothing is imported or built without listeners."""
    if LISTENERS.is_empty:
        return
    from queuepool.events import JobQueued  # imported here: most programs have no listeners

    for identity, name in pushed if LISTENERS.wants(JobQueued) else ():
        LISTENERS.emit(JobQueued(identity, name, queue, delay))
