"""Instructions that a no-op costs its worker: ``python -m tests.bench.instructions``, with valgrind installed.

Cachegrind counts them, so the figure hardly depends on what else the machine does. It compares two commits whose rates
differ by less than the machine's noise. The jobs are reserved ahead, as by a busy pool's worker; what a worker does by
the clock is left out, as valgrind makes it fifty times slower.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from queuepool.board.meters import MeterMemory
from queuepool.cli import main
from queuepool.payload.envelope import OBJECT_JOB
from queuepool.payload.php_values import build_command
from queuepool.pool import lone_worker, worker_process
from queuepool.worker import attempt, loop, slot_writer
from queuepool.worker.prefetch_size import PrefetchSize
from tests.bench.app import PHP_NOOP, QUEUEABLE
from tests.bench.rig import ROOT, Rig, redis_rig

#: jobs of the two runs whose difference counts, and how many are reserved at once
_FEW, _MANY, _AHEAD = 480, 2400, 48
#: an object job as Laravel's own class would be, with its bookkeeping
KINDS = {
    "no-op": ("noop", {}),
    "object job": (
        OBJECT_JOB,
        {
            "commandName": PHP_NOOP,
            "command": build_command(PHP_NOOP, {**dict.fromkeys(QUEUEABLE), "chained": [], "number": 7}),
        },
    ),
}
#: among the flags: the worker's meters are published, as those in a pool are
_METERED = "metered"
_VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]


def work(flags: list[str]) -> None:
    """One worker in this process."""
    worker_process.PrefetchSize = lambda _: PrefetchSize(_AHEAD)  # type: ignore[assignment, misc]
    loop._CHECK_INTERVAL = slot_writer._RSS_LASTS = attempt._SECOND = slot_writer._FRESH = math.inf
    if _METERED in flags:
        lone_worker.SlotWriter = _MeteredWriter  # type: ignore[misc]
    sys.argv[1:] = ["work", *(flag for flag in flags if flag != _METERED), "--stop-when-empty"]
    main()


class _MeteredWriter(slot_writer.SlotWriter):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named, meters=MeterMemory.new(1, 0))


def counted(rig: Rig, kind: str, jobs: int, *flags: str, first: Sequence[str] = ()) -> int:
    """Instructions of a whole worker that does so many jobs of this kind, after those of the names in ``first``."""
    rig.queue.bulk([(name, {"at": 0.0}) for name in first])
    rig.queue.bulk([KINDS[kind]] * jobs)
    command = [*_VALGRIND, sys.executable, "-m", "tests.bench.instructions", *rig.flags(), *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (count,) = re.findall(r"I\s+refs:\s+([\d,]+)", done.stderr)
    return int(count.replace(",", ""))


def report() -> None:
    """A line for each kind of job and a worker that logs nothing, one with metrics, one with the usual log."""
    with redis_rig() as rig:
        plain, metered = of_job(rig, "no-op", "--quiet"), of_job(rig, "no-op", "--quiet", _METERED)
        print(f"  published meters take {metered / plain - 1:.1%} of a no-op's instructions")
        of_job(rig, "no-op")
        of_job(rig, "object job", "--quiet")


def of_job(rig: Rig, kind: str, *flags: str, first: Sequence[str] = ()) -> float:
    """Instructions of one job of this kind; prints them, too."""
    few, many = (counted(rig, kind, jobs, *flags, first=first) for jobs in (_FEW, _MANY))
    each = (many - few) / (_MANY - _FEW)
    print(f"{each:,.0f} instructions a {kind} {' '.join(flags)}", flush=True)
    return each


if __name__ == "__main__":
    work(sys.argv[1:]) if sys.argv[1:] else report()
