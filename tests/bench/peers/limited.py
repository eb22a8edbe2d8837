"""Limits as several queues have them, in turn on one Redis: ``scripts/bench --limits --peers [--quick]``."""

from __future__ import annotations

import os
import signal
import statistics
import time
from importlib import import_module

from tests.bench.peers.holding import LimitedQueue, Moment, held, moments, waits
from tests.bench.peers.stage import Stage, stage
from tests.bench.rig import until
from tests.bench.words import QUICK, say

#: jobs of each run, and the rounds; their seconds; seconds after which the rest of them has not run
_JOBS, _ROUNDS, _SECONDS, _PATIENCE = (200, 1, 0.01, 10.0) if QUICK else (1000, 3, 0.01, 30.0)
_WORKERS = 4
#: seconds for which a job holds a place whose worker is killed, and after which the place counts as lost
_LONG, _LOST = 120.0, 10.0 if QUICK else 20.0
#: jobs that wait meanwhile for two places, of which one is in use: more than are done until then
_WAITING = 2500


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: exit(1))  # so that workers and servers end with us
    with stage() as world:
        modules = (import_module(f"tests.bench.peers.with_{name}_limits") for name in ("queuepool", "rq", "dramatiq"))
        queues: list[LimitedQueue] = [queue for module in modules for queue in module.QUEUES]
        for queue in queues:
            say(f"- {queue.name}: {queue.settings}")
        drained(world, queues)
        killed(world, queues)


def drained(world: Stage, queues: list[LimitedQueue]) -> None:
    """All jobs wait when the workers start."""
    heads = ["queue", "began", "starts/s", "most at a time", "places in use", "free, ms", "longest, ms", "attempts"]
    say(f"\n{_JOBS:,} jobs of {1000 * _SECONDS:g} ms, 2 places, {_WORKERS} workers, load {os.getloadavg()[0]:.1f}")
    say(_row(heads) + "\n" + _row(["---", *["---:"] * (len(heads) - 1)]))
    for _ in range(_ROUNDS):
        for queue in queues:
            say(_row([queue.name, *figures(_drain(world, queue))]))


def figures(found: list[Moment]) -> list[str]:
    """Of a table's row. A place counts as free from the end of its job to the beginning of the next."""
    begins = [one for one in found if one.attempt]
    span, free = found[-1].at - found[0].at, [1000 * one for one in waits(found, 2)]
    attempts = [one.attempt for one in begins]
    return [
        f"{len(begins):,}",
        f"{len(begins) / span:,.0f}",
        f"{max(held(found))}",
        f"{len(begins) * _SECONDS / (2 * span):.0%}",
        f"{statistics.median(free):.1f}",
        f"{max(free):,.0f}",
        f"{statistics.mean(attempts):.1f}, at most {max(attempts)}",
    ]


def _drain(world: Stage, queue: LimitedQueue) -> list[Moment]:
    world.clear()
    queue.push(2, range(_JOBS), _SECONDS)
    with world.workers(queue, _WORKERS):
        until(lambda: moments(world.trail.path), _PATIENCE)
        over = time.monotonic() + _PATIENCE
        while sum(not one.attempt for one in moments(world.trail.path)) < _JOBS and time.monotonic() < over:
            time.sleep(0.1)
        return moments(world.trail.path)


def killed(world: Stage, queues: list[LimitedQueue]) -> None:
    """What becomes of a place whose holder is killed."""
    say(f"\nseconds from `kill -9` of a job's process until all places are in use again, load {os.getloadavg()[0]:.1f}")
    say("| queue | 1 place | 2 places, of which one goes on |\n| --- | ---: | ---: |")
    for queue in queues:
        say(_row([queue.name, *(_seconds(world, queue, places) for places in (1, 2))]))


def _seconds(world: Stage, queue: LimitedQueue, places: int) -> str:
    taken = [_in_use_again(world, queue, places) for _ in range(_ROUNDS)]
    return ", ".join(f"not in {_LOST:g}" if one is None else f"{one:.2f}" for one in taken)


def _in_use_again(world: Stage, queue: LimitedQueue, places: int) -> float | None:
    world.clear()
    queue.push(places, [0], _LONG)
    with world.workers(queue, _WORKERS):
        until(lambda: moments(world.trail.path))
        queue.push(places, range(1, _WAITING if places > 1 else 10), _SECONDS)
        [first] = [one for one in moments(world.trail.path) if one.n == 0]
        os.kill(first.pid, signal.SIGKILL)
        dead = time.monotonic()
        while (full := _full_at(world, first, dead, places)) is None and time.monotonic() < dead + _LOST:
            time.sleep(0.02)
        return None if full is None else full - dead


def _full_at(world: Stage, first: Moment, dead: float, places: int) -> float | None:
    """When as many jobs ran as there are places, without the killed one."""
    found = [one for one in moments(world.trail.path) if one != first]
    after = ((one.at, taken) for one, taken in zip(found, held(found), strict=True) if one.at > dead)
    return next((at for at, taken in after if taken == places), None)


def _row(words: list[str]) -> str:
    return f"| {' | '.join(words)} |"


if __name__ == "__main__":
    main()
