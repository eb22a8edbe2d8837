"""The job that tells Laravel how one of its jobs ended here, so that it goes on with the chain and counts the batch.

Only Laravel can: the next job's tries and timeout, its lock and its encryption are in PHP classes, and callbacks are
PHP closures. Laravel resolves ``CLASS@METHOD`` and calls it with the payload's data (docs/laravel.md has the class).
"""

from __future__ import annotations

import os
import time
import uuid as uuids

from queuepool.payload.envelope import MAX_BYTES, Payload, dump
from queuepool.payload.signing import Signer

#: a worker of Laravel that dies must not lose the rest of a chain
_TRIES, _BACKOFF = 5, "1,5,30"
#: bytes: the largest job has an outcome too, which only Laravel reads
_LIMIT = 4 * MAX_BYTES
#: characters of an error that PHP is given
_MOST = 4000


def outcome_of(
    payload: Payload, queue: str, class_name: str, error: BaseException | None, *, unlocked: bool, signer: Signer | None
) -> bytes:
    """The payload to push to ``queue``: the job succeeded, or was lost if there is an ``error``.

    It has the job's own uuid, under which Laravel counts the job in its batch. ``unlocked``: its unique lock has been
    released.
    """
    data = dict(payload.data) if isinstance(payload.data, dict) else {}
    data["unlocked"] = unlocked
    if error is not None:
        data["error"] = f"{type(error).__name__}: {error}"[:_MOST].encode("utf-8", "replace").decode()
    fields: dict[str, object] = {
        "uuid": payload.uuid or payload.id,
        "displayName": f"{payload.options.display_name} (outcome)",
        "job": f"{class_name}@{'succeeded' if error is None else 'lost'}",
        "maxTries": _TRIES,
        "maxExceptions": None,
        "failOnTimeout": False,
        "backoff": _BACKOFF,
        "timeout": None,
        "retryUntil": None,
        "data": data,
        "createdAt": int(time.time()),
        "id": str(uuids.UUID(bytes=os.urandom(16), version=4)),
    }
    if signer:
        fields["qp"] = signer.sign(queue, fields, _LIMIT)
    return dump(fields | {"delay": None, "attempts": 0}, _LIMIT)
