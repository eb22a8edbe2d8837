"""A hook that acts after a member of a flow has ended: it adds to the flow, and kills the first worker at it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from queuepool import around
from queuepool.jobs.current_job import Current
from tests.support.flowapp import idle, late, step


@around
def adds_and_kills(job: Current) -> Iterator[None]:
    yield
    if job.name == idle.name and job.flow:
        job.flow.add(step.call("added"))
    if job.name in (idle.name, late.name) and job.attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)
