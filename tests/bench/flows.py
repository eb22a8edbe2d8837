"""Flows beside plain jobs, in turn on one server: ``scripts/bench --flows [--quick] [--store NAME]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager

from queuepool import Flow
from tests.bench import app
from tests.bench.rig import Rig, redis_rig
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


def drained(rig: Rig, fill: Fill, jobs: int, workers: int, *flags: str) -> float:
    """Jobs a second, by the moments that they note, without those of both ends."""
    rig.forget()
    fill(rig, jobs)
    with rig.pool(workers, *flags):
        pass  # it has drained what was there before it is warm
    began = sorted(start for _, start, _ in rig.trail())
    assert len(began) == jobs, f"{len(began)} of {jobs} have run"
    first, last = round(jobs * _EDGE), round(jobs * (1 - _EDGE))
    return (last - first) / (began[last] - began[first])


def compare(rig: Rig, jobs: int, workers: int, *flags: str) -> None:
    """Each fill in turn, round by round."""
    found: dict[Fill, list[float]] = {plain: [], chains: [], fan_out: []}
    for _ in range(_ROUNDS):
        for fill, figures in found.items():
            figures.append(drained(rig, fill, jobs, workers, *flags))
    how = "one reserved at a time" if flags else "as it reserves by itself"
    rates(f"pool of {workers}, {how}: plain jobs", found[plain])
    rates(f"  chains of {_LINKS}", found[chains])
    ratios("plain beside chains, round by round", found[plain], found[chains])
    rates(f"  {jobs - 1:,} jobs that one follows", found[fan_out])
    ratios("fan-out beside plain, round by round", found[fan_out], found[plain])


def commands(rig: Rig, fill: Fill, jobs: int) -> str:
    """What Redis carries out for each job, by command; also those within scripts."""
    fill(rig, jobs)
    before = rig.calls()
    with rig.pool(1, *_SINGLY):
        pass
    after = rig.calls()
    made = {name: (count - before.get(name, 0)) / jobs for name, count in after.items()}
    return ", ".join(f"{name} {rate:.2f}" for name, rate in sorted(made.items()) if rate >= 0.1)


def measure(store: str) -> None:
    """On a private server of this kind."""
    world: AbstractContextManager[Rig] = redis_rig() if store == "redis" else sql_rig(store)
    with world as rig:
        say(f"\n{store}")
        for flags in ((), _SINGLY):
            compare(rig, _MANY if store == "redis" else _FEWER, 1 if store == "sqlite" else 2, *flags)
        if store == "redis":
            for fill in (plain, chains, fan_out):
                say(f"commands a job, {fill.__name__}: {commands(rig, fill, 1000)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench --flows", description="Flows beside plain jobs.")
    parser.add_argument("--store", choices=["redis", *STORES], help="this one only")
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    only = parser.parse_args().store
    for store in ["redis", *STORES] if only is None else [only]:
        measure(store)


if __name__ == "__main__":
    main()
