"""What is done with many jobs is counted as it is done: also where a later one fails."""

from __future__ import annotations

import pytest

from queuepool.errors import StoreDown
from queuepool.payload.command import Commands
from queuepool.search.bulk import Bulk
from queuepool.search.found import FoundJob
from queuepool.stores.contract import ShelfJob
from queuepool.stores.records import Returned
from tests.support.samples import payload


def test_a_batch_is_bounded_by_bytes_too():
    large = b" " * 3_000_000 + payload("large")
    jobs = [FoundJob.waiting(ShelfJob(large, "ready"), "mail", Commands()) for _ in range(12)]
    batches = list[int]()

    def act(these):
        batches.append(len(these))
        return [Returned.DONE] * len(these)

    bulk = Bulk(lambda _: None)
    bulk.run([jobs[:7], [], jobs[7:]], act)

    assert ([5, 5, 2], 12) == (batches, bulk.done.count)


def test_what_was_done_before_a_failure_is_counted():
    jobs = [FoundJob.waiting(ShelfJob(payload(str(number)), "ready"), "mail", Commands()) for number in range(5)]

    def act(_):
        yield from (Returned.DONE, Returned.GONE, Returned.DONE)
        raise StoreDown("gone")

    bulk = Bulk(lambda _: None)
    with pytest.raises(StoreDown):
        bulk.run([jobs], act)

    assert (2, {"mail": 2}, 1) == (bulk.done.count, bulk.done.queues, bulk.done.results[Returned.GONE])
