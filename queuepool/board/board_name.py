"""A board's file name: which master made it, and on which system that master ran.

It is believed rather than the board's content, over which a job may have written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from queuepool.unix import proc


class BoardName(NamedTuple):
    """``start_time`` is the master's ``proc.start_time``; an empty ``boot`` or ``namespace`` is unknown."""

    pid: int
    start_time: int
    boot: str = ""
    namespace: str = ""

    @classmethod
    def of(cls, pid: int) -> BoardName:
        """The name of the board that this process of our own system makes or has made."""
        return cls(pid, proc.start_time(pid), proc.boot(), proc.namespace())

    @classmethod
    def own(cls) -> BoardName:
        """Of this process."""
        return cls.of(os.getpid())

    @classmethod
    def parsed(cls, path: Path) -> BoardName:
        """The name in the path; zeros for what is not there."""
        pid, start_time, boot, namespace = (path.name.removeprefix("board.").split("-") + [""] * 4)[:4]
        numbers = (int(pid), int(start_time)) if pid.isdecimal() and start_time.isdecimal() else (0, 0)
        return cls(*numbers, boot, namespace)

    def __str__(self) -> str:
        return f"board.{self.pid}-{self.start_time}-{self.boot}-{self.namespace}"

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the times on the board can be compared with our monotonic clock."""
        return self.boot == proc.boot()

    @property
    def is_of_this_system(self) -> bool:
        """Whether the pids on the board mean anything here: of this boot, and of this namespace of pids."""
        return self.is_of_this_boot and self.namespace == proc.namespace()

    @property
    def has_master(self) -> bool:
        """Whether that master runs, as far as a pid can tell it."""
        return self.is_of_this_system and proc.is_alive(self.pid, self.start_time)
