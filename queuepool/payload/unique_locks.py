"""The locks of Laravel's unique jobs: their names, and which lock a payload claims to hold.

A dispatch writes the lock's store, name and owner into the context's hidden part (from 11.39; the owner from 13.24).
Jobs that the job dispatches inherit its context, so a name counts only if it is the job's own.

The collation of MySQL's ``cache_locks`` treats names as equal that differ in case, accents, trailing spaces or ignored
characters. The lock of a PHP class keeps Laravel's name, so that each side finds the other's; ``exact`` gives any other
lock a name that no database confuses with another.

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
from queuepool.payload.lease import Lock, Unlock
from queuepool.payload.options import UNIQUE_FOR, is_time
from queuepool.payload.php_values import serialize
from queuepool.payload.xxh3 import hexdigest

STORE, NAME, OWNER = (
    "laravel_unique_job_cache_store",
    "laravel_unique_job_key",
    "laravel_unique_job_lock_owner",
)
#: in the hidden part of the context of the job that holds the lock
HIDDEN = (STORE, NAME, OWNER)
#: how all names of unique locks begin
PREFIX = "laravel_unique_job:"
#: the cache stores of Laravel's skeleton, and the kind of each
KINDS = MappingProxyType({"redis": "redis", "database": "sql"})
#: seconds that a lock lasts by default
DAY = 86400.0
#: characters that no collation confuses with others
_DISTINCT = re.compile(r"[!-@\[-~]+")
#: characters of an identity before the digest: a key has 255, with the cache's prefix and the job's name
_MOST = 100


def name_of(job: str, identity: str) -> str:
    """The lock's name since Laravel 11."""
    return f"{PREFIX}{job}:{identity}"


def names_of(job: str, display_name: str, identity: str) -> tuple[str, ...]:
    """The names that the lock may have: since Laravel 11, since 12.54 for a class with ``displayName()``, before 11.

    A payload does not show whether its class has that method.
    """
    return name_of(job, identity), name_of(hexdigest(display_name), identity), f"{PREFIX}{job}{identity}"


def new_lock(job: str, identity: str | None, seconds: float) -> Lock | None:
    """A lock for a dispatch of this job to take; ``None`` without an identity."""
    return None if identity is None else Lock(name_of(job, identity), secrets.token_hex(8), seconds)


def claimed(texts: Texts | None, lock: Lock | None, kind: str) -> Texts | None:
    """The context of a job, extended by the lock that it holds in a store of this kind."""
    if lock is None:
        return texts
    parts = {part: dict((texts or {}).get(part, {})) for part in ("data", "hidden")}
    [store] = [name for name, other in KINDS.items() if other == kind]
    parts["hidden"] |= {STORE: serialize(store), NAME: serialize(lock.name), OWNER: serialize(lock.owner)}
    return parts


def said_in(context: object) -> Unlock | None:
    """The lock that the context names, the job's own or inherited; ``None`` if it names none.

    Its ``store`` is the cache store's name in Laravel, unless it is one of the skeleton's.
    """
    if not isinstance(context, dict) or not context.get("hidden"):
        return None
    store, name, owner = map(values_of(context, "hidden").get, HIDDEN)
    if not isinstance(name, str) or not name:
        return None
    return Unlock(name, owner if isinstance(owner, str) else "", KINDS.get(str(store), str(store)))


def without_lock(context: object) -> Texts | None:
    """The context without its lock, for jobs that the holder dispatches; ``None`` if nothing is left."""
    found = texts_of(context)
    for name in HIDDEN:  # else such a job would release the holder's lock
        found["hidden"].pop(name, None)
    return found if any(found.values()) else None


def is_own(lock: Unlock, names: Iterable[str], owner: str) -> bool:
    """Whether the lock belongs to a job with these names (its class, its display name).

    ``owner`` is the one that the job was given; empty = none.
    """
    if owner and owner == lock.owner:
        return True
    return any(lock.name.startswith(f"{PREFIX}{part}:") for name in names if name for part in (name, hexdigest(name)))


def exact(lock: Lock, job: str) -> Lock:
    """The lock with a digest in its name, which distinguishes it from similar names; unchanged if it has none.

    The name still begins like those of all locks of this job, by which a worker recognizes the lock as the job's own.
    """
    if _DISTINCT.fullmatch(lock.name):
        return lock
    start = name_of(job, "")
    shown = lock.name.removeprefix(start).encode("ascii", "replace").decode()[:_MOST]
    return lock._replace(name=f"{start}{shown}#{_digest(lock.name)}")


def lasting(lock: Lock) -> dict[str, object]:
    """The payload field with the seconds that the lock lasts; none for a day."""
    return {} if lock.seconds == DAY else {UNIQUE_FOR: lock.seconds}


def seconds_in(fields: Mapping[str, Any]) -> float:
    """How many seconds the lock of a payload with these fields lasts."""
    seconds = fields.get(UNIQUE_FOR)
    return float(seconds) if is_time(seconds) and seconds else DAY


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
