"""Very many jobs go one by one through the one place of a limit: memory, and starts a second, from begin to end."""

from __future__ import annotations

import time

import psutil

from queuepool import configure
from tests.bench.limits import jobs
from tests.bench.rig import Rig
from tests.bench.tables import execute, kind
from tests.bench.words import QUICK, say

_MANY = 5_000 if QUICK else 100_000
#: of them have begun when memory is looked at
_SHARES = (0.0, 0.02, 0.25, 0.5, 0.75, 0.98)
_TENTHS = 10


def measure(rig: Rig, many: int = _MANY) -> None:
    """A pool of two workers, of which one parks what the other may not start."""
    configure(rig.queue)
    with rig.pool(2):
        rig.forget()
        began = time.monotonic()
        for first in range(0, many, 1000):
            jobs.single.bulk([{"at": float(n)} for n in range(first, first + 1000)])
        say(f"{many:,} jobs were dispatched in {time.monotonic() - began:.1f} s")
        for share in _SHARES:
            _until(rig, round(share * many))
            _memory(rig, f"{share:.0%}")
        _until(rig, many)
    _rates(sorted(moment for _, moment, _ in rig.trail()))


def _until(rig: Rig, begun: int) -> None:
    """So many have begun; looks seldom, so that it costs those nothing."""
    while rig.begun() < begun:
        time.sleep(0.1)


def _memory(rig: Rig, share: str) -> None:
    """MB of the server, and of the pool's processes; shared pages count in parts."""
    master, steward, *workers = rig.memory()
    ours = f"master {master:.1f}, steward {steward:.1f}, workers {', '.join(f'{one:.1f}' for one in workers)}"
    say(f"  {share:>4} begun, {rig.queue.parked():,} parked: MB of {ours}{_servers(rig)}")


def _servers(rig: Rig) -> str:
    """Nothing of a file, nor of MariaDB, which does not tell its pid."""
    if rig.connection.url.startswith("unix"):
        server = psutil.Process(rig.stores.client.command("INFO", "server")["process_id"])
    elif kind(rig).startswith("postgresql"):
        ((pid,),) = execute(rig, "SELECT pg_backend_pid()")
        server = psutil.Process(pid).parent()
    else:
        return ""
    return f", server {sum(one.memory_full_info().pss for one in (server, *server.children())) / 2**20:.1f}"


def _rates(starts: list[float]) -> None:
    """By tenths of the jobs: of what is quadratic, the first would be the quickest by far, or the last."""
    size = len(starts) // _TENTHS
    each = [size / (starts[n * size + size - 1] - starts[n * size]) for n in range(_TENTHS)]
    say(f"  starts a second, by tenths of the jobs: {', '.join(f'{rate:,.0f}' for rate in each)}")
