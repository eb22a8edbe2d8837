"""What an operator sees of limits, and does to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from queuepool.payload.limits import NO_PART, name_of
from queuepool.stores.factory import Stores
from queuepool.stores.limits import KeyRecord, LimitRecord

#: keys that a view shows
MOST_SHOWN = 100


def limit_rows(stores: Stores) -> Iterator[dict[str, Any]]:
    """A row for each key at which jobs hold places or wait, below one for each limit that has none of these."""
    keys: dict[str, list[KeyRecord]] = {}
    for key in stores.limits.by_key():
        keys.setdefault(name_of(key.key), []).append(key)
    for limit in stores.limits.all():
        for key in keys.get(limit.name) or [KeyRecord(limit.name, 0, 0, ())]:
            yield _row(limit, key)


def _row(limit: LimitRecord, key: KeyRecord) -> dict[str, Any]:
    number = limit.number if limit.by_hand is None else limit.by_hand
    first = key.parked[0] if key.parked else None
    return {
        "key": key.key, "limit": f"{number} in {limit.per:g} s" if limit.per else f"{number}",
        "by_hand": limit.by_hand is not None, "held": key.held, "granted": key.granted,
        "parked": sum(count for *_, count in key.parked), "lines": len(key.parked),
        "next": _line(*first[:2]) if first else None,
    }  # fmt: skip


def _line(queue: str, part: str) -> str:
    return queue if part == NO_PART else f"{queue} {part}"
