"""The job that tells Laravel how one of its jobs ended here, so that it goes on with the chain and counts the batch.

Only Laravel can: the next job's tries and timeout, its lock and its encryption are in PHP classes, and callbacks are
PHP closures. Laravel resolves ``CLASS@METHOD`` and calls it with the payload's data (docs/laravel.md has the class).
"""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType

from queuepool.log.tracebacks import summary
from queuepool.payload.envelope import CONTEXT, MAX_BYTES, Envelope, Payload, encode
from queuepool.payload.signing import Signer
from queuepool.payload.unique_locks import without_lock

#: what the job's payload has that is about that job alone: Horizon's keys, and what Laravel does without a model
_OF_THE_JOB = frozenset(("type", "tags", "silenced", "retry_of", "deleteWhenMissingModels"))
#: a worker of Laravel that dies must not lose the rest of a chain
_OPTIONS = MappingProxyType({"maxTries": 5, "backoff": "1,5,30"})
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
        data["error"] = summary(error)[:_MOST].encode("utf-8", "replace").decode()
    envelope = Envelope(
        time.time(),
        options=_OPTIONS,
        display_name=f"{payload.options.display_name} (outcome)",
        extra=_surroundings(payload),
        sign=partial(signer.sign, queue, limit=_LIMIT) if signer else None,
        limit=_LIMIT,
    )
    name = f"{class_name}@{'succeeded' if error is None else 'lost'}"
    return encode(name, data, envelope, uuid=payload.uuid or payload.id)[1]


def _surroundings(payload: Payload) -> dict[str, object]:
    """What surrounds the job, and so what Laravel does and dispatches next: its context, its trace, its tenant, and
    whatever else an application's ``Queue::createPayloadUsing`` has put into the payload.

    The outcome does not hold the job's unique lock, and its children must not take it for theirs.
    """
    found = {key: value for key, value in payload.extra.items() if key not in _OF_THE_JOB}
    context = without_lock(payload.context)
    return found | {CONTEXT: context} if context else found
