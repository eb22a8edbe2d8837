"""Flows beside plain jobs, in turn on one server: ``scripts/bench --flows [--quick] [--store NAME]``."""

from __future__ import annotations

import argparse
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from queuepool import Flow
from tests.bench import app
from tests.bench.rig import Rig, redis_rig, until
from tests.bench.tables import STORES, sql_rig
from tests.bench.words import QUICK, rates, ratios, say

#: jobs of each run, and how many runs; a database drains some thousands a second
_MANY, _FEWER, _ROUNDS = (2_000, 1_000, 2) if QUICK else (10_000, 10_000, 5)
_LINKS = 10
#: what is left out of the measure at both ends, as shares of the jobs
_EDGE = 0.15
#: jobs that a worker of each kind of pool reserves at a time
_SINGLY = ("--reserve-ahead", "1")
Fill = Callable[[Rig, int], None]


def plain(rig: Rig, jobs: int) -> None:
    """As many jobs that do not know of each other."""
    rig.queue.bulk([("stamp", {"at": 0.0}) for _ in range(jobs)])


def chains(rig: Rig, jobs: int) -> None:
    """Chains of ten, all of them dispatched before the first one begins."""
    for _ in range(jobs // _LINKS):
        flow, last = Flow(), None
        for _ in range(_LINKS):
            last = flow.add(app.stamp.call(0.0), after=last)
        flow.push_to(rig.queue)


def fan_out(rig: Rig, jobs: int) -> None:
    """One flow, in which one job follows all the others."""
    flow = Flow()
    flow.add(app.stamp.call(0.0), after=[flow.add(app.stamp.call(0.0)) for _ in range(jobs - 1)])
    flow.push_to(rig.queue)


class Drained(NamedTuple):
    """How a pool has drained a full queue."""

    #: jobs a second, by the moments that they note, without those of both ends
    rate: float
    #: seconds of processor time a job: of the pool, and of Redis; that depends less on what else the machine does
    costs: float


def drained(rig: Rig, fill: Fill, jobs: int) -> Drained:
    """By the pool that is there; it is paused while the queue is filled."""
    master = rig.family()[0]
    master.send_signal(signal.SIGUSR2)
    until(lambda: all("paused" in one.cmdline()[0] for one in rig.family()[2:]))
    rig.forget()
    fill(rig, jobs)
    began = _processor(rig)
    master.send_signal(signal.SIGCONT)
    while rig.queue.size():
        time.sleep(0.05)
    costs, starts = (_processor(rig) - began) / jobs, sorted(start for _, start, _ in rig.trail())
    first, last = round(jobs * _EDGE), round(jobs * (1 - _EDGE))
    return Drained((last - first) / (starts[last] - starts[first]), costs)


def _processor(rig: Rig) -> float:
    """Seconds of processor time of the pool and of Redis; a database does not tell its own."""
    if not rig.connection.url.startswith("unix"):
        return rig.seconds_of_processor()
    server = rig.stores.client.command("INFO", "cpu")
    return rig.seconds_of_processor() + float(server["used_cpu_user"]) + float(server["used_cpu_sys"])


def compare(rig: Rig, jobs: int, workers: int, *flags: str) -> None:
    """Each fill in turn, round by round."""
    found: dict[Fill, list[Drained]] = {plain: [], chains: [], fan_out: []}
    with rig.pool(workers, *flags):
        for _ in range(_ROUNDS):
            for fill, figures in found.items():
                figures.append(drained(rig, fill, jobs))
    say(f"pool of {workers}, {'one reserved at a time' if flags else 'as it reserves by itself'}")
    for fill, what in ((plain, "plain jobs"), (chains, f"chains of {_LINKS}"), (fan_out, "jobs that one follows")):
        rates(f"  {what}", [one.rate for one in found[fill]])
        say(f"    processor time: {1e6 * statistics.median(one.costs for one in found[fill]):.0f} us a job")
    usual = [one.rate for one in found[plain]]
    ratios("plain beside chains, round by round", usual, [one.rate for one in found[chains]])
    ratios("fan-out beside plain, round by round", [one.rate for one in found[fan_out]], usual)


def measure(store: str) -> None:
    """On a private server of this kind."""
    world: AbstractContextManager[Rig] = redis_rig() if store == "redis" else sql_rig(store)
    with world as rig:
        say(f"\n{store}")
        for flags in ((), _SINGLY):
            compare(rig, _MANY if store == "redis" else _FEWER, 1 if store == "sqlite" else 2, *flags)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench --flows", description="Flows beside plain jobs.")
    parser.add_argument("--store", choices=["redis", *STORES], help="this one only")
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    only = parser.parse_args().store
    for store in ["redis", *STORES] if only is None else [only]:
        measure(store)


if __name__ == "__main__":
    main()
