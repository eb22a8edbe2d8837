"""When a process of the pool last had to do with a flow: only after that has its steward any to look after."""

from __future__ import annotations

import time
from collections.abc import Callable

from queuepool.board.fields import Header


def marker(header: Header) -> Callable[[], None]:
    """What a process calls when it begins or ends members of flows, or may have."""

    def mark() -> None:
        header.flows_at = time.monotonic()

    return mark
