"""Which queues are paused, as a text on the board, where room is limited.

It holds their names or, if these are too many, a bit for each of the pool's queues.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

#: bytes of the text
ROOM = 2500
#: what bits begin with, and what stands for all queues: neither can be in a queue's name
_BITS, _ALL = "~", "*"


def packed(paused: Collection[str], queues: Sequence[str]) -> str:
    """The text for a pool with these ``queues``. If not even the bits fit (of 10,000), all are paused."""
    names = ",".join(sorted(paused))
    if len(names.encode("utf-8", "replace")) <= ROOM:
        return names
    bits = f"{_BITS}{sum(1 << number for number, queue in enumerate(queues) if queue in paused):x}"
    return bits if len(bits) <= ROOM else _ALL


def paused_in(text: str, queues: Callable[[], Sequence[str]]) -> list[str]:
    """The names of the paused queues; ``queues`` gives those of the pool, where the text has no names."""
    if text == _ALL:
        return [*queues()]
    if not text.startswith(_BITS):
        return [queue for queue in text.split(",") if queue]
    try:
        bits = int(text[1:], 16)
    except ValueError:  # a job has overwritten it
        return []
    return [queue for number, queue in enumerate(queues()) if bits >> number & 1]
