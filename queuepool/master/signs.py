"""How a pool is, for a service manager: read from its board, by its master or by the parent of several masters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.health import health_of
from queuepool.board.status import boot_problem, overview, renewed, title
from queuepool.config.settings import PoolSettings
from queuepool.master.herald import Signs

#: seconds after a deadline in which the pool still has to start its workers, or to settle the last job
_MARGIN = 5.0
#: seconds between two looks at all that a board and the files beside it say, which takes much longer than a pass; a new
#: state is looked at at once
_LOOK = 5.0


class SignsOfPool:
    """Of one pool that has just been started, or whose board has just appeared."""

    def __init__(self, settings: PoolSettings, board: Board) -> None:
        self._settings = settings
        self._board = board
        self._head = title(settings.name, State.STARTING, (), board.totals()).partition("starting")[0]
        self._boot_until = time.monotonic() + settings.boot_timeout if settings.boot_timeout else 0.0
        #: monotonic time at which running jobs are killed; infinity = they may take as long as they have
        self._kill_at = float("inf")
        self._trouble = ""
        self._seen: State | None = None
        self._next_look = 0.0

    def now(self) -> Signs:
        """After a pass of the master's loop."""
        header, state = self._board.header, State(self._board.header.state)
        workers = [slot for slot in self._board.of(Role.WORKER) if slot.pid and not slot.dead]
        is_ready, is_stopping = bool(header.ready), state is State.DRAINING
        until = self._stop_until(workers) if is_stopping else 0.0 if is_ready else self._boot_until
        self._look(state)
        return Signs(
            self._words(state, workers),
            is_ready,
            is_reloading=is_being_replaced(header.generation, header.target, workers) and not boot_problem(header),
            is_stopping=is_stopping,
            until=until + _MARGIN if until else 0.0,
            trouble=self._trouble,
        )

    def _words(self, state: State, workers: Sequence[Slot]) -> str:
        """The master's title, and the worst of what ``status`` says is wrong."""
        words = title(self._settings.name, state, workers, self._board.totals()).removeprefix(self._head)
        return f"{words}; {self._trouble}" if self._trouble else words

    def _look(self, state: State) -> None:
        now = time.monotonic()
        if now >= self._next_look or state is not self._seen:
            self._seen, self._next_look = state, now + _LOOK
            self._trouble = self._worst()

    def _worst(self) -> str:
        """Empty if it cannot be read."""
        with suppress(Exception):  # whatever a job has written there: it ends neither a master nor its parent
            troubles = health_of(overview(self._settings.name, self._board)).troubles
            return troubles[0].text if troubles else ""
        return ""

    def _stop_until(self, workers: Sequence[Slot]) -> float:
        """When the last running job must be over, as far as they have deadlines; 0.0 if none has."""
        if self._settings.stop_timeout and self._kill_at == float("inf"):
            self._kill_at = time.monotonic() + self._settings.stop_timeout
        busy = [slot.deadline for slot in workers if slot.state == State.BUSY]
        ends = [deadline + self._settings.grace if deadline else self._kill_at for deadline in busy]
        return max((min(end, self._kill_at) for end in ends if end != float("inf")), default=0.0)


def is_being_replaced(generation: int, target: int, workers: Sequence[Slot]) -> bool:
    """Whether workers of an older generation may still take jobs: each number has no newer one yet, or they are idle.

    A busy one whose successor works leaves after its job.
    """
    old = [slot for slot in workers if slot.generation < generation]
    return bool(old) and (len(renewed(workers, generation)) < target or any(slot.state != State.BUSY for slot in old))
