"""When a process must be killed, according to its slot."""

from __future__ import annotations

from queuepool.board.board import Killed, Slot, State

#: seconds before a lease's end at which its worker must be dead
LEASE_MARGIN = 0.5


def overdue(slot: Slot, now: float, grace: float, margin: float = LEASE_MARGIN) -> Killed | None:
    """Why this process must be killed now; ``None`` if it need not be. All in seconds; ``now`` is monotonic."""
    deadline, lease_end = slot.deadline, slot.lease_deadline  # each read once: the worker may change them in between
    if deadline and now >= deadline + grace:
        return Killed.OVERDUE if lease_end or slot.state == State.STARTING else Killed.STALLED
    if lease_end and now >= lease_end - margin:
        return Killed.LEASE
    return None


def next_deadline(slot: Slot, grace: float) -> float:
    """The monotonic time at which to check the process again; infinity when nothing is due."""
    deadline, lease_end = slot.deadline, slot.lease_deadline
    due = [deadline + grace] if deadline else []
    if lease_end:
        due.append(lease_end - LEASE_MARGIN)
    return min(due, default=float("inf"))
