"""How long things take: a push to its start, a due time, a kill, a deadline."""

from __future__ import annotations

import os
import random
import select
import signal
import time

from tests.bench.rig import Rig, until


def push_to_start(rig: Rig, jobs: int) -> list[float]:
    """Seconds from before the push to the first line of the job, on an idle pool."""
    rig.forget()
    for number in range(jobs):
        rig.queue.push("stamp", {"at": time.monotonic()})
        until(lambda number=number: len(rig.trail()) > number)  # type: ignore[misc]
        time.sleep(random.uniform(0.005, 0.02))  # the worker is to be waiting again
    return [began - pushed for pushed, began, _ in rig.trail()]


def lateness(rig: Rig, jobs: int) -> list[float]:
    """Seconds from a delayed job's time to its start."""
    rig.forget()
    for _ in range(jobs):
        delay = random.uniform(0.2, 3.0)
        rig.queue.push("stamp", {"at": time.monotonic() + delay}, delay=delay)
    until(lambda: len(rig.trail()) == jobs)
    return [began - due for due, began, _ in rig.trail()]


def recovery(rig: Rig, kills: int) -> list[float]:
    """Seconds from ``kill -9`` of a busy worker to the next start of its job."""
    taken = []
    for _ in range(kills):
        rig.forget()
        rig.queue.push("wait", {"at": 0.0})
        until(rig.trail)
        killed = time.monotonic()
        os.kill(rig.trail()[0][2], signal.SIGKILL)
        until(lambda: len(rig.trail()) == 2)
        taken.append(rig.trail()[1][1] - killed)
        os.kill(rig.trail()[1][2], signal.SIGKILL)
        until(lambda: len(rig.trail()) == 3)
        rig.queue.clear()
        os.kill(rig.trail()[2][2], signal.SIGKILL)
        rig.drain(20)
    return taken


def kill_after_deadline(rig: Rig, kills: int, timeout: float = 0.2) -> list[float]:
    """Seconds from a job's deadline to the death of its worker, in C code that hears nothing."""
    taken = []
    for _ in range(kills):
        rig.forget()
        rig.queue.push("hang", {"at": 0.0}, options={"maxTries": 1, "timeout": timeout})
        until(rig.trail)
        _, began, pid = rig.trail()[0]
        death = os.pidfd_open(pid)
        select.select([death], [], [], 10)
        taken.append(time.monotonic() - began - timeout)
        os.close(death)
        rig.drain(20)
    return taken
