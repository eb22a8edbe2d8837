"""The notices by which pools know of one another: JSON in a store that other programs can write, too.

What is too large for a notice is not read, and of all of them no more than is good for a steward, which looks at them
in a thread: it must not keep the interpreter's lock for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.stores.contract import NO_SECOND

#: most bytes of a notice that is read: a pool of a thousand workers has half of that; and of all notices
MAX_BYTES, MAX_OF_ALL = 1024 * 1024, 16 * 1024 * 1024


def notice_in(text: bytes) -> dict[str, Any] | None:
    """What a pool has published; ``None`` for a damaged text, or another program's."""
    try:
        notice = strict_json.read_object(text)
    except BadPayload:
        return None
    at, names = notice.get("at"), (notice.get("host"), notice.get("pool"))
    is_sound = isinstance(at, int | float) and 0 <= at < NO_SECOND and all(isinstance(name, str) for name in names)
    return notice if is_sound else None


def newest_of(notices: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The newest notice of each pool by host and name, in their order: one that was restarted has several."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for notice in notices:
        name = notice["host"], notice["pool"]
        if name not in found or notice["at"] >= found[name]["at"]:
            found[name] = notice
    return found


def served_in(notices: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """The queues that the pools of these notices serve; ``None``: a pool of an older version does not say its own."""
    found: set[str] = set()
    for notice in notices:
        queues = notice.get("queues")
        if not isinstance(queues, list):
            return None
        found.update(map(str, queues))
    return frozenset(found)
