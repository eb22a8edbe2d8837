"""What a store is told of limits: the key at which a job needs a place, and in whose name it holds one."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from queuepool.payload.lease import Lease

#: the partition of a job whose limit is not shared out
NO_PART = "-"
#: most bytes of a value that is part of a key as it is
_MOST_VALUE = 64


class PlaceAsked(NamedTuple):
    """A place that a job needs in order to start."""

    #: the limit's name, or NAME=VALUE where each value has its own places
    key: str
    #: whose turn it takes among those that wait
    part: str
    #: how many places there are
    number: int
    #: seconds for which a place is taken; 0.0 = for as long as the job runs
    per: float = 0.0


def name_of(key: str) -> str:
    """The name of the limit with this key."""
    return key.partition("=")[0]


def word_of(value: object) -> str:
    """A value as a part of a key: as it is if that is short and printable, else its digest."""
    text = str(value)
    is_plain = text.isprintable() and " " not in text and text not in ("", NO_PART) and not text.startswith("#")
    return text if is_plain and len(text.encode()) <= _MOST_VALUE else f"#{_digest(text)}"


def job_word(job_id: str) -> str:
    """A job's id, for places that are kept for it while it is in no worker's hands."""
    return _digest(job_id)


def holding(lease: Lease) -> Lease:
    """The lease with the name under which it may hold places; no other lease has it."""
    row = f"{lease.row.id} {lease.row.attempts}" if lease.row else ""
    return lease._replace(holder=_digest(f"{lease.queue} {lease.tag} {row}\n", lease.receipt))


def _digest(text: str, rest: bytes = b"") -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass") + rest, digest_size=12).hexdigest()
