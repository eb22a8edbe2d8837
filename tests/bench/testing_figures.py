"""What a test with ``queuepool.testing`` takes: ``scripts/bench --testing``; ten seconds, no server."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from queuepool import job
from queuepool.testing import as_current, drain, fake, run_now
from tests.bench.words import say, spread

_TESTS = 1000


@job("bench.work")
def work(order: int) -> None: ...


@job("bench.flaky", tries=3, backoff=60)
def flaky(order: int) -> None:
    if order > 0:
        raise ValueError


def faked() -> None:
    with fake() as pushed:
        work.dispatch(7)
    pushed.assert_pushed(work, 7)


def run() -> None:
    with run_now() as ran:
        work.dispatch(7)
    assert len(ran.done) == 1


def run_three_times() -> None:
    with run_now(raises=False) as ran:
        flaky.dispatch(7)
    assert len(ran.attempts) == 3


def drained() -> None:
    with fake():
        work.dispatch(7)
        assert len(drain().done) == 1


def called() -> None:
    with as_current():
        work(7)


def measure(what: str, test: Callable[[], None]) -> None:
    """Say what it takes, after the first time; the processor's time hardly depends on what else the machine does."""
    test()
    gc.collect()
    took, worked = [], []
    for _ in range(_TESTS):
        began, began_work = time.perf_counter(), time.process_time()
        test()
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - began_work)
    spread(what, took)
    say(f"  of the processor: p50 {1000 * statistics.median(worked):.2f} ms, least {1000 * min(worked):.2f} ms")


def seconds_of(program: str, first: str = "") -> float:
    """Those of the program alone, in an interpreter of its own that has run another one ``first``."""
    lines = f"{first}\nimport time\nbegan = time.perf_counter()\n{program}\nprint(time.perf_counter() - began)"
    return float(subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    measure("as_current: enter, call, leave", called)
    measure("fake: enter, dispatch, assert, leave", faked)
    measure("fake: enter, dispatch, drain, leave", drained)
    measure("run_now: enter, dispatch, run, leave", run)
    measure("run_now: the same with three attempts and two backoffs", run_three_times)
    began = "from queuepool import job\nfrom queuepool.testing import run_now\nf = job('f')(lambda: None)\n"
    first = min(seconds_of(f"{began}with run_now(): f.dispatch()") for _ in range(5))
    say(f"the first run_now of a process, its imports included (best of 5): {1000 * first:.0f} ms")
    plugin = min(seconds_of("import queuepool.testing.plugin", first="import pytest") for _ in range(5))
    say(f"the import of the plugin, at each start of pytest (best of 5): {1000 * plugin:.1f} ms")


if __name__ == "__main__":
    main()
