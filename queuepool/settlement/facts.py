"""The facts about a job that its events carry."""

from __future__ import annotations

from queuepool.errors import BadPayload
from queuepool.events import JobFacts
from queuepool.payload.context import values_of
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease

#: most bytes of a payload that is read for an event before any worker has read it: a longer one might kill the reader
_GLIMPSE = 64 * 1024


def facts_of(payload: Payload, queue: str) -> JobFacts:
    """The facts of a decoded payload."""
    context = None if payload.context is None else values_of(payload.context, "data") or None
    return JobFacts(payload.id, payload.uuid, payload.name, queue, payload.attempts, context, payload.tags)


def facts_in(lease: Lease) -> JobFacts:
    """The facts of a job whose payload a worker may have decoded."""
    try:
        return facts_of(decode(lease.receipt, lease.attempts), lease.queue)
    except BadPayload:
        return unknown_in(lease.queue)


def facts_of_unread(lease: Lease) -> JobFacts:
    """The facts of a job whose payload no worker has decoded; only its queue if the payload is long."""
    return facts_in(lease) if len(lease.receipt) <= _GLIMPSE else unknown_in(lease.queue)


def unknown_in(queue: str) -> JobFacts:
    """The facts of a job whose payload cannot, or must not, be decoded."""
    return JobFacts("", "", "", queue, 0)
