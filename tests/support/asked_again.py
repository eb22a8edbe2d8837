"""A call that is made again when its server gave up on it, as the next round of a steward or worker makes it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from queuepool.errors import StoreDown

T = TypeVar("T")
#: a server ends a transaction whose client says nothing for two seconds, as a thread does on a crowded machine
_TIMES = 5


def asked_again(call: Callable[[], T]) -> T:
    """The answer; for calls beside many others in one interpreter."""
    for _ in range(_TIMES):
        try:
            return call()
        except StoreDown:
            continue
    return call()
