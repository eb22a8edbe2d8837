"""One job at a time: a real worker beside a bare loop over the same script, in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from queuepool.payload.lease import Lease
from tests.bench import app
from tests.bench.rig import ROOT, Rig


def bare_loop(rig: Rig, jobs: int, batch: int = 1) -> float:
    """Jobs a second of a loop that reserves, reads and calls, settling each job with the next, and nothing else."""
    fill(rig, jobs)
    began = time.monotonic()
    loop(rig, jobs, batch)
    return jobs / (time.monotonic() - began)


def loop(rig: Rig, jobs: int, batch: int) -> None:
    store = rig.stores.queue
    tag, done = store.join(), list[Lease]()
    for _ in range(0, jobs, batch):
        done = store.reserve(["default"], tag, batch, done).leases
        for lease in done:
            app.noop(**json.loads(lease.receipt)["data"])
    store.delete(done)


def worker(rig: Rig, jobs: int) -> float:
    """Jobs a second of ``queuepool work``, by the server's clock from its first reserve to its last."""
    fill(rig, jobs)
    command = [sys.executable, "-m", "tests.bench.lone_worker", *rig.flags()]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return jobs / float(done.stdout)


def round_trips(rig: Rig, jobs: int) -> float:
    """Commands that a worker sends for each job."""
    before = rig.calls()
    worker(rig, jobs)
    after = rig.calls()
    sent = sum(after.get(name, 0) - before.get(name, 0) for name in ("evalsha", "eval", "blpop"))
    pushed = -(-jobs // 1000)
    return (sent - pushed) / jobs


def fill(rig: Rig, jobs: int) -> None:
    rig.queue.clear()
    rig.queue.bulk([("noop", {"n": number}) for number in range(jobs)])
