"""Cancelled jobs: the error that is recorded of one, and how a job that waits is taken out of its queue."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from queuepool.errors import BadPayload, Cancelled, StoreDenied, StoreDown, StoreError
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease, LeaseRow
from queuepool.settlement.endings import Endings, commands_of
from queuepool.settlement.failing import record
from queuepool.settlement.flows import failed_member
from queuepool.settlement.states import UNFINISHED_LASTS, States
from queuepool.settlement.verdict import NOT_RUN
from queuepool.stores.contract import ShelfJob
from queuepool.stores.elsewhere import plainer
from queuepool.stores.factory import Stores
from queuepool.stores.pace import StorePace
from queuepool.stores.steps import PageSize

#: an id that JSON leaves as it is, so that a search of the bytes finds it
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)


def cancelled_in(payload: Payload, by: str, trace: str = "") -> Cancelled:
    """The error of an attempt that ``by`` has cancelled; ``trace``: where it stood, if that is known."""
    return Cancelled(f"{payload.name} (attempt {payload.attempts}): cancelled by {by} while it ran", trace, by)


def cancelled_before(payload: Payload, by: str) -> Cancelled:
    """The error of a job that ``by`` has cancelled while it waited."""
    return Cancelled(f"{payload.name}: cancelled by {by} while it waited", by=by)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits in a queue. ``lease``: its queue and bytes, and its row in a database; no worker holds it."""

    lease: Lease
    payload: Payload


def find_waiting(stores: Stores, queue: str, job_id: str) -> WaitingJob | None:
    """The job with this id, ready or delayed; ``None`` if none waits there. Raises ``StoreError``.

    Reads the whole queue, page by page, but cannot find a job whose payload names no id.
    """
    walk, size, paced = stores.queue.walk(queue, ("ready", "delayed")), PageSize(), StorePace()
    mark = job_id.encode() if _PLAIN.fullmatch(job_id) else b""
    while page := paced(partial(walk.page, size.jobs)):
        size.fit(len(job.payload) for job in page)
        for job in page:
            if mark in job.payload and job.shelf != "reserved" and (payload := _with_id(job, job_id)):
                return WaitingJob(_free(job, queue), payload)
    return None


def _with_id(job: ShelfJob, job_id: str) -> Payload | None:
    with suppress(BadPayload):
        payload = decode(job.payload, job.attempts)
        return payload if payload.id == job_id else None
    return None


def _free(job: ShelfJob, queue: str) -> Lease:
    """A lease that nobody holds; a database knows the job by its row."""
    return Lease(queue, job.payload, row=None if job.attempts is None else LeaseRow(job.place, job.attempts))


def cancel_waiting(stores: Stores, found: WaitingJob, error: Cancelled) -> bool:
    """Record it as failed and take it out of its queue, with its lock, in one step; ``False`` if it waits no longer.

    Raises ``StoreDown``, after which it is unknown whether it was, and ``StoreError``. It may be repeated.
    """
    settings, lease, payload = stores.settings, found.lease, found.payload
    row: dict[str, Any] = record(payload, lease, settings.name, error)
    state = _states_for(stores, payload).failed(payload, lease.queue, NOT_RUN, error)
    member = failed_member(payload, NOT_RUN)
    ending = Endings(settings, commands_of(settings)).after(payload, error)._replace(state=state, member=member)
    try:
        return stores.queue.cancel(lease, payload.id, row, ending)
    except StoreDown:
        raise
    except StoreError:  # the record may be the reason
        return stores.queue.cancel(lease, payload.id, plainer(row), ending)


def _states_for(stores: Stores, payload: Payload) -> States:
    """The states for this job: its pool or its schedule may track it, which only a stored state shows."""
    with suppress(StoreDenied):
        if payload.options.track is None and stores.values.tracked([payload.id]):
            return States(UNFINISHED_LASTS)
    return States()
