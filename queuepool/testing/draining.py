"""``drain``: what waits in a queue is run."""

from __future__ import annotations

from functools import partial

from queuepool.errors import QueuepoolError
from queuepool.jobs import diversion
from queuepool.jobs.after_commit import Postponed
from queuepool.jobs.connecting import default_queue
from queuepool.jobs.job_options import queue_name
from queuepool.stores.sql.borrowed import BorrowedQueue
from queuepool.testing.attempts import Ran
from queuepool.testing.skipped_time import skip_in
from queuepool.testing.temporary import TIME
from queuepool.testing.worker import Bounds, InProcessWorker

_IN_TRANSACTION = (
    "drain: a transaction is open, and what is dispatched in it waits for its commit; Django's TestCase never commits: "
    "dispatch and drain within fake()"
)


def drain(*queues: str, delayed: bool = False, raises: bool = True, tries: int = 1, most: int = 1000) -> Ran:
    """Run in this process, as a worker does, what is ready in these queues, until nothing is; ``default`` without any.

    It is the queue that ``dispatch`` uses: within ``fake`` the temporary one, else the configured one, which should be
    a test's own. ``delayed``: also what is due later, with the store's clock set forward for this process; otherwise
    such jobs stay, and so do those that a backoff delays. ``raises``, ``tries`` and ``most`` as for ``run_now``.

    Raises ``ConfigError`` for a name that no queue can have, ``ValueError`` for a wrong number, ``StoreError``, and,
    without ``fake``, ``QueuepoolError`` in a transaction of Django's that holds back what is dispatched.
    """
    names = [queue_name(name) for name in queues or ("default",)]
    bounds, ran = Bounds(tries, most), Ran()
    bounds.check()
    queue = default_queue()
    if diversion.active:
        diversion.active.run()
    elif isinstance(queue.pusher.pushes, BorrowedQueue):
        raise QueuepoolError(_IN_TRANSACTION)
    stores = queue.stores
    skip = TIME.skip if diversion.active else partial(skip_in, stores.queue)
    worker = InProcessWorker(stores, ran, bounds)
    try:
        while worker.run_next(names) or (delayed and worker.next_due is not None):
            if worker.next_due is not None:
                skip(worker.next_due)
    finally:
        worker.leave()
        if diversion.active is None:  # else the time stays where it is
            stores.queue.clock = ""  # type: ignore[attr-defined]
    if not diversion.active and not ran.attempts and isinstance(queue.pusher.pushes, Postponed):
        raise QueuepoolError(_IN_TRANSACTION)
    if raises and (error := worker.take_error()) is not None:
        raise error
    return ran
