"""Record a job that has failed for good, in the step that ends it: as it is, or what the store takes of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from queuepool.errors import StoreDown, StoreError
from queuepool.events import Event, JobQuarantined, StoreRefused
from queuepool.log.tracebacks import text_of
from queuepool.payload.envelope import Payload, counted
from queuepool.payload.lease import Ending, Lease
from queuepool.stores.contract import QueueStore
from queuepool.stores.elsewhere import plainer

#: the reason for a payload whose failure no record could hold
UNRECORDED = "unrecorded"


def record(payload: Payload, lease: Lease, connection: str, error: BaseException) -> dict[str, Any]:
    """A row of the failed store. As in Laravel, its id is the job's uuid, so that it is written only once."""
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
    """The payload with its attempts: a table of jobs has them in a column, one of failed jobs has no such column."""
    return lease.receipt if lease.attempts is None else counted(lease.receipt, lease.attempts)


def fail(
    store: QueueStore,
    lease: Lease,
    job_id: str,
    record: Mapping[str, Any],
    note: Callable[[Event], None],
    ending: Ending,
) -> bool:
    """Like ``QueueStore.fail``, but a refused record is replaced by a plainer one, and that by a quarantine entry.

    A refused record must not leave the job in its queue: it would run again, more often than its tries allow, and the
    record in the end would be about those runs. Refusals are noted. Raises the first one if all three ways are refused,
    as happens when the record is not the cause.
    """
    ways: list[Callable[[], bool]] = [
        lambda: store.fail(lease, job_id, record, ending),
        lambda: store.fail(lease, job_id, plainer(record), ending),
    ]
    if not ending.outcome:  # Laravel must learn of an outcome: such a job stays, and fails again
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
            for event in _refusal_events(lease.queue, refusals) if is_ours else ():
                note(event)
            return is_ours
    raise refusals[0]


def _refusal_events(queue: str, refusals: list[StoreError]) -> Iterator[Event]:
    if refusals:
        yield StoreRefused(queue, str(refusals[0]))
    if len(refusals) > 1:
        yield JobQuarantined(queue, UNRECORDED)
