"""Pushing from a coroutine: what ``adispatch`` adds to ``dispatch``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from queuepool.jobs.dispatch import Sending, bound, pushed
from queuepool.jobs.job_options import Options

if TYPE_CHECKING:
    from queuepool.jobs.client import Queue
    from queuepool.jobs.job_id import JobId


#: makes the calls of a dispatch, each its payload's data and its arguments by name; in a thread
Calls = Callable[[], Sequence[tuple[object, Mapping[str, Any]]]]


async def adispatched(name: str, calls: Calls, sending: Sending, options: Options) -> list[JobId]:
    """As ``dispatched``, awaited."""
    queue = bound(await _default_queue(), sending)
    return await queue.aside(lambda: pushed(queue, name, calls(), sending, options))


async def _default_queue() -> Queue:
    from queuepool.jobs import connecting  # imported here: slow, and a worker may never push

    if not connecting.is_configured():
        import asyncio

        # The first one reads files and imports a store's library.
        await asyncio.to_thread(connecting.default_queue)
    return connecting.default_queue()
