"""Names of unique locks that no database takes for one another, and how long a lock was to last.

The keys of MySQL's ``cache_locks`` have a collation: it takes names for equal that differ by case, accent or trailing
spaces, and what it ignores. The lock of a PHP class keeps the name that Laravel gives it, so that either side finds the
other's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from queuepool.payload.ending import Lock
from queuepool.payload.options import UNIQUE_FOR, is_time
from queuepool.payload.unique_locks import name_of

#: seconds that a lock lasts which says nothing of it
DAY = 86400.0
#: what no collation takes for anything else
_DISTINCT = re.compile(r"[!-@\[-~]+")
#: most characters of an identity that the digest follows: a key has 255, with the cache's prefix and the job's name
_MOST = 100


def exact(lock: Lock, job: str) -> Lock:
    """The lock of this job by a name whose digest tells it from all that look alike; unchanged if nothing does.

    It begins as all names of this job's locks do, by which a worker knows that the lock is the job's own.
    """
    if _DISTINCT.fullmatch(lock.name):
        return lock
    start = name_of(job, "")
    shown = lock.name.removeprefix(start).encode("ascii", "replace").decode()[:_MOST]
    return lock._replace(name=f"{start}{shown}#{_digest(lock.name)}")


def lasting(lock: Lock) -> dict[str, object]:
    """The field by which a payload says how long its lock lasts, if that is not a day."""
    return {} if lock.seconds == DAY else {UNIQUE_FOR: lock.seconds}


def seconds_in(fields: Mapping[str, Any]) -> float:
    """How long the lock of a payload with these fields is to last."""
    seconds = fields.get(UNIQUE_FOR)
    return float(seconds) if is_time(seconds) and seconds else DAY


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
