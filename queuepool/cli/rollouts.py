"""Waits until the pools of this host have replaced their workers."""

from __future__ import annotations

import time
from collections.abc import Iterable

from queuepool.board.board import Board
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import overview
from queuepool.cli import output
from queuepool.cli.waiting import within
from queuepool.errors import NotRunning, QueuepoolError
from queuepool.operating.rollouts import Rollout

#: seconds between looks at a board
_POLL = 0.05


class LocalRestart:
    """The restart of a pool on this host. Create it before requesting the restart. Raises ``NotRunning``."""

    def __init__(self, runtime: RuntimeDir) -> None:
        self.name, self.runtime = runtime.name, runtime
        self._board: Board = runtime.board()
        self._newest = self._board.header.generation + 1

    def wait(self, until: float) -> None:
        """Wait until all workers run the new code; old ones may still finish a job.

        ``until`` is monotonic. Raises ``QueuepoolError`` if the new code fails to boot, or time runs out.
        """
        if not within(max(until - time.monotonic(), 0.0), self._is_done, poll=_POLL):
            raise QueuepoolError(f"pool {self.name!r}: timed out, {self._seen().words}")
        output.say(f"pool {self.name}: {self._seen().words}")

    def _is_done(self) -> bool:
        if not self._board.has_master:
            raise NotRunning(self.name, self.runtime.path)
        seen = self._seen()
        if seen.problem:
            raise QueuepoolError(f"pool {self.name!r}: {seen.problem}")
        return seen.is_done

    def _seen(self) -> Rollout:
        return Rollout.of(overview(self.name, self._board), self._newest)


def wait_for(several: Iterable[LocalRestart], seconds: float) -> None:
    """Wait for all of them, ``seconds`` in total. Raises ``QueuepoolError``."""
    until = time.monotonic() + seconds
    for restart in several:
        restart.wait(until)
