"""What the peers have in common whose pushes are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.bench.peers.peer import AS_USUAL, CONCURRENT, MANY, batches

#: pushes under way at once
_TOGETHER = 50


class Coroutines:
    """One loop for all pushes."""

    pushes = True
    fields = AS_USUAL | {MANY}
    strengths = dict.fromkeys(("drain", "sleep"), CONCURRENT)
    _runner = asyncio.Runner()  # of all peers: two of one module push through one client, which is bound to its loop

    def push(self, job: str, n: int) -> None:
        self._runner.run(self._push(job, [n]))

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for batch in batches(numbers, _TOGETHER):
            self._runner.run(self._push(job, batch))

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        raise NotImplementedError
