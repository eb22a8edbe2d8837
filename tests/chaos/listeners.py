"""Listeners in workers and in the steward: they write what the pool reports of jobs into the same ledger."""

from __future__ import annotations

import os
from typing import Any

from queuepool import on
from queuepool.board.states import Killed
from queuepool.events import (
    AlertCleared,
    AlertRaised,
    JobCancelled,
    JobEvent,
    JobFailed,
    JobGivenBack,
    JobLost,
    JobProcessed,
    JobReleased,
    JobTimedOut,
    LeaseLost,
    ProcessDied,
)
from tests.chaos.own_ledger import LEDGER

_WORDS = {
    JobProcessed: "ack", JobGivenBack: "requeue", LeaseLost: "stale",
    JobTimedOut: "killed_span", JobLost: "killed_span", JobCancelled: "killed_span",
}  # fmt: skip

#: the steward's, which imports this while its master lives
_MASTER = os.getppid()


@on(JobFailed)
def tell_why(event: JobFailed) -> None:
    LEDGER.write("fail", id=event.job.id, a=event.job.attempt, pid=os.getpid(), e=type(event.error).__name__)


@on(JobReleased)
def tell_of_a_release(event: JobReleased) -> None:
    about = {"e": type(event.error).__name__} if event.error else {}
    LEDGER.write("release", id=event.job.id, a=event.job.attempt, pid=os.getpid(), **about)


@on(JobProcessed, JobGivenBack, LeaseLost, JobTimedOut, JobLost, JobCancelled)
def tell(event: JobEvent) -> None:
    if isinstance(event, (JobTimedOut, JobCancelled)) and event.killed.is_cancelled:
        return  # as of a job that raised: its hooks have run
    LEDGER.attempt(_WORDS[type(event)], event.job.id, event.job.attempt)


@on(ProcessDied)
def tell_of_the_end_of_a_lease(event: ProcessDied) -> None:
    if Killed.LEASE.reason in event.cause:
        LEDGER.write("lease_kill", pid=event.pid)


@on(AlertRaised, AlertCleared)
def tell_of_an_alert(event: Any) -> None:
    state = "raised" if isinstance(event, AlertRaised) else "cleared"
    LEDGER.write("alert", state=state, kind=event.kind, subject=event.subject, pid=os.getpid(), master=_MASTER)
