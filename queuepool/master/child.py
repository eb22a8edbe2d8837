"""What the master knows of one process, in its own memory.

The board holds a copy. A job can write anything there, so only the fields of the process itself and of the steward are
read back.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from queuepool.board.board import Killed, Role, Slot, State
from queuepool.board.facts import Facts


@dataclass(slots=True)
class Child:
    """One process and its slot.

    ``forked_at`` is monotonic, and when it was requested for a process that a template forks. ``start_time`` is the
    kernel's (``proc.start_time``), 0 until known. ``was_ready``: it was seen ready. ``stop_sent``: it was sent a stop.
    ``pid`` is 0 until a template has forked it; ``status`` is its wait status.
    """

    pid: int
    slot: Slot
    role: Role
    number: int
    generation: int
    forked_at: float
    was_ready: bool = False
    stop_sent: bool = False
    incarnation: int = 0
    start_time: int = 0
    dead: bool = False
    status: int = 0
    killed: Killed = Killed.NOT

    def __str__(self) -> str:
        return f"{self.role.name.lower()}={self.number} pid={self.pid}"

    @property
    def at_work(self) -> str:
        """Which job it runs, for the log; empty if none."""
        slot = self.slot
        return f" job={slot.job} id={slot.job_id}" if slot.state == State.BUSY and self.role == Role.WORKER else ""

    @property
    def is_ready(self) -> bool:
        """Whether it has finished booting."""
        return self.slot.state != State.STARTING

    @property
    def was_killed(self) -> bool:
        """Whether it was killed by SIGKILL, not by the master: it may have done nothing wrong."""
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL and not self.killed

    @property
    def facts(self) -> Facts:
        """The facts that the board must hold."""
        role, number, generation, incarnation = self.role, self.number, self.generation, self.incarnation
        started = self.pid, self.start_time
        return Facts(role, number, generation, incarnation, *started, self.dead, self.status, self.killed)

    def write(self) -> None:
        """Write the facts to the board, for the other processes."""
        self.slot.facts = self.facts

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to settle for this dead process; writes its facts again."""
        self.write()
        return self.slot.settled_incarnation == self.incarnation or self.slot.holds_nothing
