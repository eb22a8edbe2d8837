"""The locks of Laravel's unique jobs: their names, and which of them a payload says that it holds.

A dispatch writes the lock's store, name and owner into the context's hidden part (from 11.39; the owner from 13.24).
Whatever the job dispatches while it runs inherits its context, so a name counts only if it is the job's own.

The keys of MySQL's ``cache_locks`` have a collation: it takes names for equal that differ by case, accent or trailing
spaces, and what it ignores. The lock of a PHP class keeps the name that Laravel gives it, so that either side finds the
other's; ``exact`` gives any other one a name that no database takes for another.

Source: Bus/UniqueLock.php, getKey; Foundation/Bus/PendingDispatch.php (8.83 to 13.x).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from queuepool.payload.context import Texts, texts_of, values_of
from queuepool.payload.ending import Lock, Unlock
from queuepool.payload.options import UNIQUE_FOR, is_time
from queuepool.payload.php_serialize import serialize
from queuepool.payload.xxh3 import hexdigest

STORE, NAME, OWNER = (
    "laravel_unique_job_cache_store",
    "laravel_unique_job_key",
    "laravel_unique_job_lock_owner",
)
#: in the hidden part of the context of the job that holds the lock
HIDDEN = (STORE, NAME, OWNER)
#: how the names of all unique locks begin
PREFIX = "laravel_unique_job:"
#: Laravel's cache stores by name, as its skeleton has them, and the kind of each
KINDS = MappingProxyType({"redis": "redis", "database": "sql"})
#: seconds that a lock lasts which says nothing of it
DAY = 86400.0
#: what no collation takes for anything else
_DISTINCT = re.compile(r"[!-@\[-~]+")
#: most characters of an identity that the digest follows: a key has 255, with the cache's prefix and the job's name
_MOST = 100


def name_of(job: str, identity: str) -> str:
    """The lock's name since Laravel 11."""
    return f"{PREFIX}{job}:{identity}"


def names_of(job: str, display_name: str, identity: str) -> tuple[str, ...]:
    """The names that the lock may have: since Laravel 11, for a class with a ``displayName()`` since 12.54, and before.

    A payload does not say whether a class has that method.
    """
    return name_of(job, identity), name_of(hexdigest(display_name), identity), f"{PREFIX}{job}{identity}"


def new_lock(job: str, identity: str | None, seconds: float) -> Lock | None:
    """The lock that a dispatch of this job is to take; ``None`` without an identity."""
    return None if identity is None else Lock(name_of(job, identity), secrets.token_hex(8), seconds)


def claimed(texts: Texts | None, lock: Lock | None, kind: str) -> Texts | None:
    """The context of a job that holds this lock, in a store of this kind, with what else is in its context."""
    if lock is None:
        return texts
    parts = {part: dict((texts or {}).get(part, {})) for part in ("data", "hidden")}
    [store] = [name for name, other in KINDS.items() if other == kind]
    parts["hidden"] |= {STORE: serialize(store), NAME: serialize(lock.name), OWNER: serialize(lock.owner)}
    return parts


def said_in(context: object) -> Unlock | None:
    """The lock that the context names, the job's own or inherited; ``None`` if it names none.

    ``store`` is Laravel's name of the cache store if that is none of the skeleton's.
    """
    if not isinstance(context, dict) or not context.get("hidden"):
        return None
    store, name, owner = map(values_of(context, "hidden").get, HIDDEN)
    if not isinstance(name, str) or not name:
        return None
    return Unlock(name, owner if isinstance(owner, str) else "", KINDS.get(str(store), str(store)))


def without_lock(context: object) -> Texts | None:
    """The context without its lock, for what is dispatched by the job that holds it; ``None`` if nothing is left."""
    found = texts_of(context)
    for name in HIDDEN:  # a job with them would release this job's own lock
        found["hidden"].pop(name, None)
    return found if any(found.values()) else None


def is_own(lock: Unlock, names: Iterable[str], owner: str) -> bool:
    """Whether the lock is that of a job with these names: its class, its display name.

    ``owner`` is the one that the job itself was given; empty = none.
    """
    if owner and owner == lock.owner:
        return True
    return any(lock.name.startswith(f"{PREFIX}{part}:") for name in names if name for part in (name, hexdigest(name)))


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
