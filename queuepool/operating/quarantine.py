"""Payloads that could not be jobs: what is shown of them, and what can be done with each."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from queuepool.board.status import iso
from queuepool.jobs.client import Queue
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.records import Quarantined, Returned

#: bytes of a payload that a list shows
_GLIMPSE = 40
#: how wrapped payloads begin, each with the hint to give
_WRAPPED = (
    (rb"[sOa]:\d+:", "it is PHP-serialized: switch off the serializer of the producer's Redis connection"),
    (rb"\x1f\x8b|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18", "it is compressed: switch that off on the producer's connection"),
    (rb"\x80[\x02-\x05]", "it is a Python pickle, which is never read"),
    (rb"\xef\xbb\xbf", "it begins with a byte order mark"),
)


def entry_of(opened: Queue, queue: str, entry_id: str) -> Quarantined | None:
    """The entry with this id; ``None`` if there is none."""
    return next((one for one in opened.stores.records.quarantined(queue) if one.id == entry_id), None)


def hint_of(entry: Quarantined) -> str:
    """What it probably is; empty if that is not known."""
    return next((words for start, words in _WRAPPED if re.match(start, entry.payload)), "")


def put_back(opened: Queue, locks: HeldLocks, entry: Quarantined) -> Returned:
    """Put it back on its queue unchanged, unless another job holds its unique lock."""
    back = partial(opened.stores.records.requeue, entry.queue, entry.id, None)
    return locks.put_back(opened.stores, entry.payload, back, ended=False)


def drop_entry(opened: Queue, locks: HeldLocks, entry: Quarantined) -> Returned:
    """Drop it with its unique locks; who follows it learns that."""
    finder = locks.set_aside
    unlocks = finder.locks_of(entry.payload) if finder.may_hold(entry.payload) else ()
    state = finder.state_of(entry.queue, entry.payload, None)
    return Returned(int(opened.stores.records.drop_quarantined(entry.queue, entry.id, unlocks, state)))


def quarantine_row(entry: Quarantined, shown: int | None = _GLIMPSE) -> dict[str, Any]:
    """A row of a list, with so many bytes of the payload; ``None``: without any."""
    return {
        "id": entry.id,
        "queue": entry.queue,
        "reason": entry.reason,
        "at": iso(entry.at),
        "bytes": len(entry.payload),
        "payload": None if shown is None else glimpse(entry.payload, shown),
    }


def glimpse(payload: bytes, max_bytes: int) -> str:
    """The beginning of a payload, as text."""
    cut = payload[:max_bytes].decode("utf-8", "backslashreplace")
    return f"{cut} … ({len(payload) - max_bytes} bytes more)" if len(payload) > max_bytes else cut
