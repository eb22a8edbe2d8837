"""What really happened, one line per event, written by the jobs themselves and by this listener."""

from __future__ import annotations

import json
import os
import time

from queuepool import on
from queuepool.events import JobFailed, JobLost, JobReleased, JobTimedOut


def note(what: str, **facts: object) -> None:
    """Append one line, in one write so that lines of several processes do not mix."""
    line = json.dumps({"at": time.time(), "what": what, "pid": os.getpid(), **facts}) + "\n"
    fd = os.open(os.environ["DEMO_DIARY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


@on(JobFailed, JobLost, JobReleased, JobTimedOut)
def tell(event: JobFailed | JobLost | JobReleased | JobTimedOut) -> None:
    """Called in the worker, or in the steward if the worker is dead."""
    note(type(event).__name__, id=event.job.id, name=event.job.name, attempt=event.job.attempt)
