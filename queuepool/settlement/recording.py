"""Ends a job that has failed for good, whatever its record holds.

A refused record must not leave the job in its queue: it would run again, more often than its tries allow, and what is
recorded in the end would be those runs and not its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from queuepool.errors import StoreDown, StoreError
from queuepool.events import Event, JobQuarantined, StoreRefused
from queuepool.payload.ending import Ending
from queuepool.payload.lease import Lease
from queuepool.stores.contract import QueueStore
from queuepool.stores.split_failed import plainer

#: why a payload is in the quarantine whose failure no record could hold
UNRECORDED = "unrecorded"


def fail(
    store: QueueStore,
    lease: Lease,
    job_id: str,
    record: Mapping[str, Any],
    ending: Ending,
    note: Callable[[Event], None],
) -> bool:
    """As ``QueueStore.fail``; a refused record is replaced by a plainer one, and that by an entry of the quarantine.

    A refusal is noted. Raises it if all three are refused, as where the refused part is not the record.
    """
    ways: list[Callable[[], bool]] = [
        lambda: store.fail(lease, job_id, record, ending),
        lambda: store.fail(lease, job_id, plainer(record), ending),
    ]
    if not ending.outcome:  # of which Laravel must learn: such a job fails again
        ways.append(lambda: store.quarantine(lease, UNRECORDED))
    refusals: list[StoreError] = []
    for way in ways:
        try:
            is_ours = way()
        except StoreDown:
            raise
        except StoreError as error:
            refusals.append(error)
        else:
            for event in _told(lease.queue, refusals) if is_ours else ():
                note(event)
            return is_ours
    raise refusals[0]


def _told(queue: str, refusals: list[StoreError]) -> Iterator[Event]:
    if refusals:
        yield StoreRefused(queue, str(refusals[0]))
    if len(refusals) > 1:
        yield JobQuarantined(queue, UNRECORDED)
