"""How far pools have come in replacing their workers, by their boards or by their notices."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from queuepool.board.board import Board
from queuepool.board.overview import PoolOverview
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import overview
from queuepool.cli import output
from queuepool.cli.waiting import within
from queuepool.errors import NotRunning, QueuepoolError

#: seconds between looks at a board
_POLL = 0.05


class Rollout(NamedTuple):
    """Whether the new code works in a pool; if it does not, ``problem`` says why it will not by itself, if so."""

    is_done: bool
    words: str
    problem: str

    @classmethod
    def of(cls, pool: PoolOverview, newest: int = 0) -> Rollout:
        """``newest``: the least generation that its restart brings about."""
        newest = max(newest, pool.generation)
        workers = [one for one in pool.processes if one.role == "worker" and one.state != "dead"]
        renewed = {one.number for one in workers if one.generation >= newest and one.state != "starting"}
        # An old one that is busy leaves after its job; any other could still take one.
        is_done = (
            pool.generation == newest
            and len(renewed) >= pool.workers
            and not any(one.generation < newest and one.state not in ("busy", "draining") for one in workers)
        )
        words = f"{len(renewed)} of {pool.workers} workers run the new code"
        return cls(is_done, words, "" if is_done else _problem(pool, newest))


def _problem(pool: PoolOverview, newest: int) -> str:
    if pool.state == "draining":
        return "it is being stopped"
    if pool.boot_problem and pool.generation == newest:
        return f"the new code does not become ready: {pool.boot_problem}"
    return ""


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
