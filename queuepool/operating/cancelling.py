"""Cancels one job of a connection, and says what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from queuepool.board.runtime_dir import boards_in
from queuepool.jobs.cancelling import Cancellation, Canceller, CancelOutcome, CancelWish
from queuepool.jobs.client import Queue
from queuepool.operating.choice import Choice
from queuepool.operating.queues import known_queues


def cancel_on(choice: Choice, queue: Queue, folders: Iterable[Path], wish: CancelWish) -> Cancellation:
    """Cancel it, and wait until that is done. ``folders``: those of this connection's pools on this host."""
    with boards_in(folders) as boards:
        return Canceller(queue.stores, known_queues(choice, queue.settings, queue.stores), boards).cancel(wish)


def words_of(found: Cancellation) -> str:
    """What has come of it, in a line."""
    job = f"job {found.id}" + (f" ({found.name})" if found.name else "")
    waited = ", where it waited for a place of a limit" if found.was == "parked" else ""
    match found.outcome:
        case CancelOutcome.CANCELLED if found.was == "running":
            return f"{job} was cancelled while it ran (pid {found.pid}); it is recorded as failed"
        case CancelOutcome.CANCELLED:
            return f"{job} was taken out of queue {found.queue}{waited}; it is recorded as failed"
        case CancelOutcome.REQUEUED:
            return f"{job} was interrupted (pid {found.pid}), and is back in queue {found.queue}"
        case CancelOutcome.WAITS:
            return f"{job} waits in queue {found.queue} already{waited}: there is no attempt to interrupt"
        case CancelOutcome.OVER:
            return f"{job} is over already"
        case CancelOutcome.ELSEWHERE:
            place = f"on host {found.host}, in pool {found.pool} (pid {found.pid})"
            return f"{job} runs {place}: queuepool cancel {found.id} --on {found.host}/{found.pool}"
        case CancelOutcome.RESERVED:
            return f"{job} is reserved by a worker of no pool that is known here"
        case CancelOutcome.ORDERED:
            return f"{job} is told to end (pid {found.pid}), but is not settled yet: is its store away?"
        case CancelOutcome.CONTRARY:
            return f"{job} is being ended already: {found.refusal}"
    return f"{job} neither waits nor runs here"
