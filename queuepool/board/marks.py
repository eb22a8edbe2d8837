"""When a process of the pool last had to do with flows or limits: only after that has its steward any to look after."""

from __future__ import annotations

import time
from collections.abc import Callable

from queuepool.board.fields import Header


def flow_marker(header: Header) -> Callable[[], None]:
    """What a process calls when it begins or ends members of flows, or may have."""

    def mark() -> None:
        header.flows_at = time.monotonic()

    return mark


def limit_marker(header: Header) -> Callable[[], None]:
    """What a process calls when a job with limits is about to start."""

    def mark() -> None:
        header.limits_at = time.monotonic()

    return mark
