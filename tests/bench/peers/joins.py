"""A group of jobs and the one that gets what they have returned, beside Celery's chord and a DBOS workflow.

``scripts/bench --flows --peers [--quick]``; seconds from the dispatch to the first line of the last job.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from queuepool import Flow, results
from tests.bench import app
from tests.bench.rig import ROOT, Rig, redis_rig, until
from tests.bench.tables import sql_rig
from tests.bench.words import QUICK, say

_SIZE, _ROUNDS = (100, 2) if QUICK else (1000, 5)
_WORKERS = 2
#: a round takes about a minute where ours takes one second; how long all of its rounds may take
_OF_DBOS, _LONGEST = 2, 300.0


def of_group(rig: Rig) -> float:
    """Ours, on a pool that is there."""

    def dispatch() -> None:
        flow = Flow()
        numbers = [flow.add(app.number.call(n)) for n in range(_SIZE)]
        flow.add(app.total.call(time.monotonic(), results(numbers)))
        flow.push_to(rig.queue)

    return seconds(rig, dispatch)


def seconds(rig: Rig, dispatch: Callable[[], None]) -> float:
    """From the dispatch to the moment that the last job notes."""
    rig.forget()
    dispatch()
    until(rig.trail)
    ((at, began, _),) = rig.trail()
    assert at > 0, "the last job got other results"
    return began - at


@contextmanager
def celery(rig: Rig) -> Iterator[Callable[[], None]]:
    """Its workers beside ours on one server; gives what dispatches a chord."""
    os.environ |= {"REDIS": rig.connection.url.replace("unix://", "redis+socket://"), "TRAIL": str(rig.trail_file)}
    from tests.bench.peers import with_celery_chord as peer

    words = [f"{Path(sys.executable).parent}/celery", "-A", f"{peer.__name__}:app", "worker", "--pool", "prefork"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR"]
    command = [*words, "--concurrency", str(_WORKERS), *quiet]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield lambda: peer.dispatch(_SIZE)
    finally:
        process.terminate()
        process.wait(30)


def dbos(rig: Rig) -> list[float]:
    """Of the rounds that have ended in time, in one process of its own; the first one only if there is no other."""
    command = [sys.executable, "-m", "tests.bench.peers.with_dbos", str(_SIZE), str(_OF_DBOS + 1)]
    url = rig.connection.url.replace("postgresql+psycopg", "postgresql")
    env = {**os.environ, "POSTGRES": url}
    try:
        told = subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=_LONGEST).stdout
    except subprocess.TimeoutExpired as late:
        told = late.stdout or b""
    found = [float(line) for line in told.split()]
    return found[1:] or found


def row(name: str, found: list[float]) -> str:
    """Of the table."""
    if not found:
        return f"| {name} | no round within {_LONGEST:.0f} s | |"
    middle = statistics.median(found)
    return f"| {name} | {middle:.2f} ({min(found):.2f} to {max(found):.2f}) | {_SIZE / middle:,.0f} |"


def main() -> None:
    say(f"| group of {_SIZE:,} | seconds | jobs a second |\n| --- | ---: | ---: |")
    with redis_rig() as rig, rig.pool(_WORKERS), celery(rig) as dispatch:
        pairs = [(of_group(rig), seconds(rig, dispatch)) for _ in range(_ROUNDS + 1)][1:]
        say(row("queuepool, Redis", [ours for ours, _ in pairs]))
        say(row("Celery's chord, Redis", [theirs for _, theirs in pairs]))
    with sql_rig("postgres") as rig:
        with rig.pool(_WORKERS):
            say(row("queuepool, PostgreSQL", [of_group(rig) for _ in range(_ROUNDS + 1)][1:]))
        say(row("DBOS, PostgreSQL", dbos(rig)))


if __name__ == "__main__":
    main()
