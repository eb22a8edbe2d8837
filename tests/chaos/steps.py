"""Object jobs from which something follows: each is a step of a chain in a batch, two of three hold a unique lock.

Of those two, one names its lock in its context, as Laravel does from 13.24; of the other only the handler knows it.
Each is tracked, so that its state can be compared with what became of it.
"""

from __future__ import annotations

import time
from typing import Any

from queuepool.config.urls import kind_of
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, Envelope, encode
from queuepool.payload.lease import Lock
from queuepool.payload.options import TRACK
from queuepool.payload.php_values import build_command
from queuepool.payload.unique_locks import claimed, new_lock

STREAM, QUEUE, OUTCOMES = "c", "steps", "outcomes"
STEP, UNIQUE = "Chaos\\Step", "Chaos\\Unique"
#: seconds, longer than any run
_LASTS = 3600.0
#: how they end: done at once or later, failed for good
MODES = ("nap", "nap", "release", "kill", "raise", "fail")
_FOLLOWS = {"chained": [build_command(STEP, {"number": 0, "facts": []})], "batchId": "a batch"}


def lock_of(number: int) -> Lock | None:
    """The lock that this step holds until it is over, if it holds one."""
    return new_lock(_class_of(number), str(number) if number % 3 else None, _LASTS)


def step(number: int, mode: str, url: str) -> tuple[bytes, Lock | None]:
    """The payload, and the lock to take with its push to the store at ``url``."""
    name, lock = _class_of(number), lock_of(number)
    facts: dict[str, Any] = {"m": mode, **{"nap": {"seconds": 0.02}, "release": {"delay": 0.2}}.get(mode, {})}
    command = build_command(name, {"number": number, "facts": facts, **_FOLLOWS})
    locked = claimed(None, lock if name == STEP else None, kind_of(url))
    envelope = Envelope(
        options={"maxTries": 0} if mode == "release" else {},
        display_name=name,
        created_at=int(time.time()),
        extra={TRACK: _LASTS, **({CONTEXT: locked} if locked else {})},
    )
    made, raw = encode(OBJECT_JOB, {"commandName": name, "command": command}, envelope)
    return raw.replace(made.encode(), f"{STREAM}.{number}".encode()), lock


def _class_of(number: int) -> str:
    return UNIQUE if number % 3 == 2 else STEP
