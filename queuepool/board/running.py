"""A job that a worker runs, as the board shows it: one value, wherever on the board its facts stand."""

from __future__ import annotations

from typing import NamedTuple

#: stands for a progress of 0 on the board, since 0.0 is unknown there
SAYS_0 = 2.0


class Running(NamedTuple):
    """An attempt that a worker has begun.

    A living worker may be writing it, and any job may have overwritten it: whoever acts on it compares ``id`` with the
    payload of the held job.
    """

    #: its number among the held jobs
    number: int
    job: str
    id: str
    queue: str
    attempt: int
    #: Unix seconds
    since: float
    #: monotonic; 0.0 = none
    deadline: float
    #: seconds for which its state is kept after its end; 0.0 = it is not tracked
    track: float
    #: how far it says that it is, from 0 to 1; ``None`` if it does not say
    progress: float | None
    note: str
    #: JSON of its ``Policy``; empty if its worker has begun no job
    policy: str


#: what a slot shows of which no job has begun
NOTHING = Running(-1, "", "", "", 0, 0.0, 0.0, 0.0, None, "", "")


def fraction_of(progress: float) -> float | None:
    """How far a job says that it is, from its field on the board; ``None`` if it says nothing."""
    return 0.0 if progress == SAYS_0 else progress if 0.0 < progress <= 1.0 else None
