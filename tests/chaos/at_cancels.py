"""Cancellations of running jobs at any moment: now and then the next job is hit in place of the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator

from queuepool.board.cancelling import order, running_on
from queuepool.board.runtime_dir import boards_in
from tests.chaos.rig import Rig


def cancel_jobs(rig: Rig) -> Iterator[float]:
    """Some at once, some with a grace, and some of them go back to their queues."""
    while True:
        pool = rig.chance.choice(rig.pools)
        with boards_in([rig.run_dir / pool.name]) as boards:
            found = (one for board in boards for one in running_on(board))
            running = [one for one in found if not one.job.id.startswith("g.")]  # what follows it would never start
            for one in rig.chance.sample(running, min(rig.chance.randint(1, 4), len(running))):
                rig.ledger.write("cancel", id=one.job.id, a=one.job.attempt)
                grace, requeue = rig.chance.choice((0.0, 0.0, 0.2)), rig.chance.random() < 0.3
                order(one, by="chaos", grace=grace, requeue=requeue)
        yield rig.chance.uniform(0.0, 0.03)


#: only for runs that ask for it: a cancelled job ends otherwise than its mode says
NEMESES = {"cancel_jobs": (cancel_jobs, 1)}
