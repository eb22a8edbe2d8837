"""The first boot of a pool: if its code cannot be imported, the pool ends instead of trying again."""

from __future__ import annotations

import logging
import os

from queuepool.board.board import HELPERS, Board, Role
from queuepool.board.boot_report import read
from queuepool.events import BootFailed
from queuepool.log.fields import line_of
from queuepool.master.child import Child
from queuepool.master.children import Children
from queuepool.master.respawn import Respawn
from queuepool.unix.exit_codes import BOOT

#: the generation before any restart: while a later one boots, older workers continue
_FIRST = 1
_log = logging.getLogger("queuepool")


class FirstBoot:
    """The master's view of the first boot, which is over when a worker or a template is ready."""

    def __init__(self, board: Board, respawn: Respawn) -> None:
        self._board = board
        self._respawn = respawn
        self._logged_problem = ""
        self.has_failed = False

    def has_ended(self, child: Child, status: int, others: Children) -> bool:
        """Whether this death belongs to a failed first boot: then there is nothing left to settle or to report."""
        if not (child.is_ready or child.stop_sent) and os.waitstatus_to_exitcode(status) == BOOT:
            self._handle_failure(child, status, others)
        if not self.has_failed or child.is_ready:
            return False
        child.slot.role = Role.FREE
        return True

    def _handle_failure(self, child: Child, status: int, others: Children) -> None:
        """The first child that cannot import its modules decides, unless it is a steward: workers import them too."""
        if child.role == Role.STEWARD:
            self._log_cause(child, status, logging.ERROR)
        elif not self._any_has_booted(others) and child.generation == _FIRST:
            self._log_cause(child, status, logging.CRITICAL)
            if not self.has_failed:
                _log.critical("no worker has come to work since the start: the pool ends")
            self.has_failed = True

    def _any_has_booted(self, others: Children) -> bool:
        return self._respawn.has_booted or any(other.is_ready for other in others if other.role not in HELPERS)

    def _log_cause(self, child: Child, status: int, level: int) -> None:
        """Log the cause, unless it was the last one logged."""
        report = read(self._board.trace(child.slot), status)
        if report.problem != self._logged_problem:
            self._logged_problem = report.problem
            event = BootFailed(child.number, report.trace, report.problem)
            _log.log(level, "%s", line_of(event), extra={"event": event})
