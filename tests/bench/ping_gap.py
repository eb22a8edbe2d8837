"""The longest time between two pings to systemd's watchdog on a busy machine: ``python -m tests.bench.ping_gap``.

Four processes a processor do nothing but compute, while the pool works off its queue; half a minute. The aim is that no
gap is longer than half of the time after which the watchdog would end the pool.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from tests.bench.rig import Rig, redis_rig, until
from tests.bench.words import say
from tests.support.service_manager import ServiceManager, service_manager

#: seconds of the watchdogs, of which the shorter is the harder; seconds for each; busy processes a processor; jobs
_WATCHDOGS, _SECONDS, _BUSY, _JOBS = (2.0, 6.0), 15.0, 4, 8000


@contextmanager
def busy_machine() -> Iterator[None]:
    """Processes that compute all the time."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(_BUSY * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


@contextmanager
def pool(rig: Rig, manager: ServiceManager) -> Iterator[None]:
    """A pool of four that has said that it is ready."""
    flags = [*rig.flags(), "--workers", "4", "--runtime-dir", str(rig.path / "run"), "--quiet"]
    process = subprocess.Popen([*manager.parent(), sys.executable, "-m", "queuepool", "start", *flags])
    try:
        until(lambda: manager.having("READY=1"))
        yield
    finally:
        process.terminate()
        process.wait(30)


def gaps_of(manager: ServiceManager) -> list[float]:
    """Seconds between each two pings. Nothing else is done meanwhile: the times are those of reading."""
    began = time.monotonic()
    while time.monotonic() < began + _SECONDS:
        manager.read()
        time.sleep(0.01)
    return [later.at - earlier.at for earlier, later in pairwise(manager.having("WATCHDOG=1")) if earlier.at > began]


def main() -> int:
    """Returns the exit code: 1 if a gap was too long."""
    longest = []
    with redis_rig() as rig:
        for number, watchdog in enumerate(_WATCHDOGS):
            rig.queue.bulk([("nap", {"n": 0})] * _JOBS)
            with service_manager(rig.path / f"notify{number}", watchdog) as manager, pool(rig, manager), busy_machine():
                gaps = gaps_of(manager)
            longest.append(max(gaps) / watchdog)
            load = os.getloadavg()[0]
            say(f"WATCHDOG_USEC of {watchdog:g} s: {len(gaps)} gaps, the longest {max(gaps):.2f} s, "
                f"{max(gaps) / watchdog:.0%} (load {load:.0f})")  # fmt: skip
    return 0 if max(longest) <= 0.5 else 1


if __name__ == "__main__":
    raise SystemExit(main())
