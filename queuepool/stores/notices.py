"""The notices by which pools know of one another: JSON in a store that other programs can write, too."""

from __future__ import annotations

from typing import Any

from queuepool.errors import BadPayload
from queuepool.payload import strict_json

#: the last Unix second that is taken for one: any later number is damage
_LAST = 2.0**40


def notice_in(text: bytes) -> dict[str, Any] | None:
    """What a pool has published; ``None`` for a damaged text, or another program's."""
    try:
        notice = strict_json.read_object(text)
    except BadPayload:
        return None
    at, names = notice.get("at"), (notice.get("host"), notice.get("pool"))
    is_sound = isinstance(at, int | float) and 0 <= at < _LAST and all(isinstance(name, str) for name in names)
    return notice if is_sound else None
