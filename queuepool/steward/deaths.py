"""What a worker's death means for the job that it ran: the error, the tally that counts it, and the event."""

from __future__ import annotations

import os
import signal
import time

from queuepool import events
from queuepool.board import boot_report
from queuepool.board.board import Killed, Slot
from queuepool.board.boot_report import BootReport
from queuepool.errors import AttemptLost, JobTimedOut, WorkerDied
from queuepool.log.tracebacks import imports_part
from queuepool.payload.envelope import Payload
from queuepool.settlement.facts import facts_of
from queuepool.unix import proc
from queuepool.unix.exit_codes import BOOT


def error_of(slot: Slot, status: int | None, trace: str) -> AttemptLost:
    """The error of the job in this slot; ``status`` is ``None`` if no master saw the death."""
    cause = cause_of(slot, status)
    name = f"{slot.job} (attempt {slot.attempt})"
    by_alarm = status is not None and os.waitstatus_to_exitcode(status) == -signal.SIGALRM
    if by_alarm or slot.killed == Killed.OVERDUE:
        return JobTimedOut(f"{name} ran past its deadline: {cause}", trace)
    if slot.killed == Killed.STALLED:  # it has ended, and its end was not settled in time
        return JobTimedOut(f"{name} had ended when its worker stalled: {cause}", trace)
    return WorkerDied(f"{name}: its worker died: {cause}", trace)


def cause_of(slot: Slot, status: int | None) -> str:
    """Why the process died, in words."""
    if reason := Killed(slot.killed).reason:
        return f"killed by the master: {reason}"
    return "unseen, its master was gone" if status is None else proc.cause_of(status)


def boot_of(slot: Slot, status: int, trace: str) -> BootReport:
    """Why the process in this slot did not come to work. Stacks, unlike a traceback, have all frames: ours go here."""
    is_report = os.waitstatus_to_exitcode(status) == BOOT
    return boot_report.of_text(trace if is_report else imports_part(trace), status, slot.note)


def tally_of(error: AttemptLost) -> str:
    """The tally that a release of the job raises."""
    # Laravel counts a timeout as an exception.
    return "exceptions" if isinstance(error, JobTimedOut) else "crashes"


def event_of(payload: Payload, queue: str, error: AttemptLost, began: float | None) -> events.Event:
    """The event of the death, noticed now; ``began`` in Unix seconds."""
    facts, killed = facts_of(payload, queue), events.KilledAttempt(began, time.time(), payload.extra)
    if isinstance(error, JobTimedOut):
        return events.JobTimedOut(facts, error.trace, killed)
    return events.JobLost(facts, str(error), error.trace, killed)
