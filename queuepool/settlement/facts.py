"""The facts about a job that its events carry."""

from __future__ import annotations

from queuepool.errors import BadPayload
from queuepool.events import JobFacts
from queuepool.payload.context import values_of
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease

#: most bytes of a payload that is read for an event before any worker has read it: who does must not die of it
_GLIMPSE = 64 * 1024


def facts_of(payload: Payload, queue: str) -> JobFacts:
    """Those of a decoded payload."""
    context = None if payload.context is None else values_of(payload.context, "data") or None
    return JobFacts(payload.id, payload.uuid, payload.name, queue, payload.attempts, context, payload.tags)


def facts_in(lease: Lease) -> JobFacts:
    """Those of a payload that a worker may have decoded."""
    try:
        return facts_of(decode(lease.receipt, lease.attempts), lease.queue)
    except BadPayload:
        return unknown_in(lease.queue)


def facts_of_unread(lease: Lease) -> JobFacts:
    """Those of a payload that no worker has decoded; none if it is long."""
    return facts_in(lease) if len(lease.receipt) <= _GLIMPSE else unknown_in(lease.queue)


def unknown_in(queue: str) -> JobFacts:
    """Those of a payload that cannot be decoded, or that nobody should."""
    return JobFacts("", "", "", queue, 0)
