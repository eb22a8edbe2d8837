"""What is kept of a job's steps: under which names, how much of it, and what becomes of it at the end of a lease."""

from __future__ import annotations

from typing import NamedTuple

#: how the name of a cursor begins where its place is kept, and that of no step
CURSOR = "~"
#: most bytes of the name of a step, with its key, and of a cursor's; and of a cursor's place, as JSON
MOST_NAME, MOST_PLACE = 191, 256
#: most bytes of all names and values of one job, and most names of one job
MOST_BYTES, MOST_KEPT = 1024 * 1024, 10_000


class StepsEnd(NamedTuple):
    """What the verb that ends a lease does with the kept steps of its job; see ``stores.kept_steps``."""

    job_id: str
    #: whether to forget them, as the job is done
    forget: bool = False
    #: how far cursors are: for each the name by which that is kept, and its JSON
    places: tuple[tuple[str, bytes], ...] = ()
    #: seconds until the next attempt, for which they are kept in addition
    delay: float = 0.0
