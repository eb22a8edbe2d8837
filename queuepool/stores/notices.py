"""The notices by which pools know of one another: JSON in a store that other programs can write, too."""

from __future__ import annotations

from typing import Any

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.stores.contract import NO_SECOND


def notice_in(text: bytes) -> dict[str, Any] | None:
    """What a pool has published; ``None`` for a damaged text, or another program's."""
    try:
        notice = strict_json.read_object(text)
    except BadPayload:
        return None
    at, names = notice.get("at"), (notice.get("host"), notice.get("pool"))
    is_sound = isinstance(at, int | float) and 0 <= at < NO_SECOND and all(isinstance(name, str) for name in names)
    return notice if is_sound else None
