"""What a search among a million waiting jobs costs those that run: ``scripts/bench --search [--quick]``."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.rig import ROOT, Rig, percentile, redis_rig, until
from tests.bench.scale.fill import Filler
from tests.bench.words import QUICK, say, spread

#: jobs that wait in the searched queue; jobs a second in the other one, seconds of each measurement, measurements
_WAITING, _RATE, _SECONDS, _ROUNDS = (50_000, 200, 3.0, 1) if QUICK else (1_000_000, 200, 15.0, 5)


def starts(rig: Rig) -> list[float]:
    """Seconds from each push to its job's first line, at a steady rate of pushes."""
    rig.forget()
    jobs, began = round(_RATE * _SECONDS), time.monotonic()
    for number in range(jobs):
        time.sleep(max(began + number / _RATE - time.monotonic(), 0.0))
        rig.queue.push("stamp", {"at": time.monotonic()})
    until(lambda: len(rig.trail()) == jobs)
    return [start - pushed for pushed, start, _ in rig.trail()]


@contextmanager
def searched(rig: Rig, took: list[float]) -> Iterator[None]:
    """One search after the other, each through all jobs; ``took`` is given the seconds of each."""
    over = threading.Event()
    searches = threading.Thread(target=_search, args=(rig, took, over))
    searches.start()
    try:
        yield
    finally:
        over.set()
        searches.join()


def _search(rig: Rig, took: list[float], over: threading.Event) -> None:
    where = ["--url", rig.connection.url, "--prefix", rig.connection.prefix]
    command = [sys.executable, "-m", "queuepool", "jobs", "big", "--where", "customer=4711", "--count", *where]
    while not over.is_set():
        began = time.monotonic()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        took.append(time.monotonic() - began)


def main() -> None:
    with redis_rig() as rig, rig.pool(2, "--queue", "default"):
        Filler(rig).waiting("big", _WAITING)
        say(f"{_WAITING:,} jobs wait in another queue; load {os.getloadavg()[0]:.1f}")
        took: list[float] = []
        ratios = []
        for _ in range(_ROUNDS):
            alone = starts(rig)
            with searched(rig, took):
                beside = starts(rig)
            spread("push to start", alone)
            spread("push to start beside searches", beside)
            ratios.append(percentile(beside, 0.99) / percentile(alone, 0.99))
        say(f"p99 beside searches / alone: {', '.join(f'{one:.2f}' for one in ratios)}")
        spread("a search through all", took)
        say(f"median of the ratios: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
