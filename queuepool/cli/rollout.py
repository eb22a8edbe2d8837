"""A restart of the local pools, watched on their boards until the new code works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from queuepool.board.board import Board, Role, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import boot_problem, renewed
from queuepool.cli import output
from queuepool.cli.options import option, parsed
from queuepool.cli.pools import within
from queuepool.config.values import seconds
from queuepool.errors import NotRunning, QueuepoolError

#: the default wait in seconds
_DEFAULT_WAIT = "300"
WAIT: Callable[[Callable[..., int | None]], Callable[..., int | None]] = option(
    "--wait", metavar="[SECONDS]", is_flag=False, flag_value=_DEFAULT_WAIT, type=parsed(seconds), default=0.0,
    help=f"Wait until the new code works, else exit with 1  [default: 0; without SECONDS: {_DEFAULT_WAIT}]",
)  # fmt: skip


class Rollout:
    """One running pool's restart. Create it before requesting the restart. Raises ``NotRunning``."""

    def __init__(self, runtime: RuntimeDir) -> None:
        self.name, self.runtime = runtime.name, runtime
        self._board: Board = runtime.board()
        self._old_generation = self._board.header.generation

    def wait(self, until: float) -> None:
        """Wait until all workers run the new code; old ones may still finish a job.

        ``until`` is monotonic. Raises ``QueuepoolError`` if the new code fails to boot, or the time is over.
        """
        if not within(max(until - time.monotonic(), 0.0), self._is_done):
            raise QueuepoolError(f"pool {self.name!r}: the time is over, {self._progress()}")
        output.say(f"pool {self.name}: {self._progress()}")

    def _is_done(self) -> bool:
        header = self._board.header
        if not self._board.has_master:
            raise NotRunning(self.name, self.runtime.path)
        if State(header.state) is State.DRAINING:
            raise QueuepoolError(f"pool {self.name!r} is being stopped")
        if header.generation <= self._old_generation:
            return False
        if self._renewed_count() >= header.target and not self._idle_old_ones():
            return True
        if problem := boot_problem(header):
            raise QueuepoolError(f"pool {self.name!r}: the new code does not come to work: {problem}")
        return False

    def _renewed_count(self) -> int:
        """How many of the pool's workers run the new code."""
        newest = max(self._board.header.generation, self._old_generation + 1)
        return len(renewed(self._board.of(Role.WORKER), newest))

    def _idle_old_ones(self) -> bool:
        """Whether a worker with the old code could still take a job: a busy one leaves after its job."""
        workers = [slot for slot in self._board.of(Role.WORKER) if slot.pid and not slot.dead]
        newest = self._board.header.generation
        return any(slot.generation < newest and slot.state != State.BUSY for slot in workers)

    def _progress(self) -> str:
        return f"{self._renewed_count()} of {self._board.header.target} workers run the new code"


def wait_for(several: Iterable[Rollout], seconds: float) -> None:
    """Wait for all of them, ``seconds`` in total. Raises ``QueuepoolError``."""
    until = time.monotonic() + seconds
    for rollout in several:
        rollout.wait(until)
