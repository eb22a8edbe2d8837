"""Jobs for workers that run several at once: each shows something that a job may do there."""

from __future__ import annotations

import asyncio

from queuepool import current, job
from tests.support.poolapp import note


@job("prints")
async def prints(word: str, last: str = "\n", count: int = 5) -> None:
    """Print one line in pieces, while the neighbours print theirs."""
    for number in range(count):
        print(word, end=" " if number < count - 1 else last)
        await asyncio.sleep(0.02)
    note(event="printed", word=word, job=current().name)
