"""What the failed store keeps of a job."""

from __future__ import annotations

import os
from typing import Any

from queuepool.log.tracebacks import text_of
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.payload.uncounted import counted


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
