"""A job that finds its place at once beside a plain one, in turn on one pool."""

from __future__ import annotations

import statistics

from tests.bench import flows
from tests.bench.flows import Drained, Fill, drained
from tests.bench.rig import Rig
from tests.bench.words import QUICK, rates, ratios, say

#: jobs of each run on Redis and on a database, and how many runs
_MANY, _FEWER, _ROUNDS = (2_000, 200, 2) if QUICK else (4_000, 400, 5)
#: jobs that the workers of each kind of pool reserve at a time
_POOLS = {"one reserved at a time": ("--reserve-ahead", "1"), "as it reserves by itself": ()}


def limited(rig: Rig, jobs: int) -> None:
    """As many jobs as ``flows.plain`` pushes, each with a place for the asking."""
    rig.queue.bulk([("held", {"at": 0.0}) for _ in range(jobs)])


def measure(rig: Rig) -> None:
    """Each kind of pool by itself."""
    for name, reserving in _POOLS.items():
        compare(rig, name, *reserving)


def compare(rig: Rig, name: str, *flags: str) -> None:
    """Both kinds of jobs in turn, round by round."""
    is_file, is_redis = (rig.connection.url.startswith(word) for word in ("sqlite", "unix"))
    found: dict[Fill, list[Drained]] = {flows.plain: [], limited: []}
    with rig.pool(1 if is_file else 2, *flags):
        for _ in range(_ROUNDS):
            for fill, figures in found.items():
                figures.append(drained(rig, fill, _MANY if is_redis else _FEWER))
    say(name)
    for what, figures in zip(("plain jobs", "jobs that find their place"), found.values(), strict=True):
        rates(f"  {what}", [one.rate for one in figures])
        say(f"    processor time: {1e6 * statistics.median(one.costs for one in figures):.0f} us a job")
    plain, placed = found.values()
    ratios("so many times as long", [one.rate for one in plain], [one.rate for one in placed])
    ratios("so many times the processor time", [one.costs for one in placed], [one.costs for one in plain])
