"""What becomes of a job whose process is killed, and of a process whose job does not end."""

from __future__ import annotations

import math
import os
import select
import signal
import time

from tests.bench.peers.cases import warm
from tests.bench.peers.jobs import LIMIT
from tests.bench.peers.peer import Peer
from tests.bench.peers.stage import Stage
from tests.bench.peers.trail import Note
from tests.bench.rig import until

#: seconds after which what has not happened counts as never
PATIENCE = 6.0


def recovery(stage: Stage, peer: Peer, jobs: int) -> list[float]:
    """Seconds from ``kill -9`` of the process that runs a job to the job's next start; infinite: too long."""
    with stage.workers(peer, 2):
        os.kill(_begun(stage, peer, "hang").pid, signal.SIGKILL)
        killed = time.monotonic()
        try:
            until(lambda: len(stage.trail) > 1, PATIENCE)
        except TimeoutError:
            return [math.inf]
        return [stage.trail.notes()[1].began - killed]


def overdue(stage: Stage, peer: Peer, jobs: int, job: str) -> list[float]:
    """Seconds from the deadline of a job that does not heed it to the end of its process; infinite: too long."""
    with stage.workers(peer, 2):
        runaway = _begun(stage, peer, job)
        if not _ends(runaway.pid, LIMIT + PATIENCE):
            return [math.inf]
        return [max(0.0, time.monotonic() - runaway.began - LIMIT)]


def _begun(stage: Stage, peer: Peer, job: str) -> Note:
    """One job, as soon as it runs."""
    warm(stage, peer)
    peer.push(job, 0)
    until(lambda: len(stage.trail))
    return stage.trail.notes()[0]


def _ends(pid: int, within: float) -> bool:
    process = os.pidfd_open(pid)
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)
