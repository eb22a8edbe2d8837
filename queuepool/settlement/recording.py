"""What the failed store keeps of a job that has failed for good; it ends whatever its record holds.

A refused record must not leave the job in its queue: it would run again, more often than its tries allow, and what is
recorded in the end would be those runs and not its error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from queuepool.errors import StoreDown, StoreError
from queuepool.events import Event, JobQuarantined, StoreRefused
from queuepool.log.tracebacks import text_of
from queuepool.payload.ending import Ending
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.payload.uncounted import counted
from queuepool.stores.contract import QueueStore
from queuepool.stores.split_failed import plainer

#: why a payload is in the quarantine whose failure no record could hold
UNRECORDED = "unrecorded"


def record(payload: Payload, lease: Lease, connection: str, error: BaseException) -> dict[str, Any]:
    """A row of the failed store. As in Laravel, its id is the uuid, so that it is written once."""
    return {
        "id": payload.uuid or (payload.id if payload.identified else f"{payload.id}-{os.urandom(4).hex()}"),
        "name": payload.name,
        "queue": lease.queue,
        "connection": connection,
        "attempts": payload.attempts,
        "payload": _counted(lease).decode("utf-8", "replace"),
        "exception": text_of(error),
    }


def _counted(lease: Lease) -> bytes:
    """The payload with its attempts, which a table of jobs has in a column, and one of failed jobs has nowhere else."""
    return lease.receipt if lease.attempts is None else counted(lease.receipt, lease.attempts)


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
