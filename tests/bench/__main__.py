"""Measure, and print one table: ``scripts/bench [--quick]``."""

from __future__ import annotations

import platform
import statistics
import sys
import time

import redis

from tests.bench import latency, throughput
from tests.bench.rig import Rig, percentile, rig

QUICK = "--quick" in sys.argv[1:]


def main() -> None:
    with rig() as world:
        server = world.stores.queue.client.command("INFO", "server")["redis_version"]
        say(f"Python {platform.python_version()}, redis-py {redis.__version__}, Redis {server}, {platform.platform()}")
        one_at_a_time(world)
        with world.pool(workers=2):
            spread("push to start, idle pool of 2", latency.push_to_start(world, 60 if QUICK else 500))
            spread("delayed job, after its time", latency.lateness(world, 40 if QUICK else 300))
            spread("killed worker's job starts again", latency.recovery(world, 5 if QUICK else 40))
            spread("death after the deadline, in C code", latency.kill_after_deadline(world, 5 if QUICK else 60))
        idle(world)


def one_at_a_time(world: Rig) -> None:
    jobs, rounds = (4000, 2) if QUICK else (20000, 5)
    throughput.bare_loop(world, 2000)
    pairs = [(throughput.worker(world, jobs), throughput.bare_loop(world, jobs)) for _ in range(rounds)]
    ours, bare = (statistics.median(figures) for figures in zip(*pairs, strict=True))
    ratios = [worker / loop for worker, loop in pairs]
    say(f"one job at a time, 1 worker: {ours:,.0f} jobs/s; bare loop over the same script: {bare:,.0f} jobs/s")
    say(f"  ratio, pair by pair: median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    say(f"  commands sent for each job: {throughput.round_trips(world, jobs):.3f}")


def idle(world: Rig) -> None:
    workers, seconds = 4, 5 if QUICK else 20
    with world.pool(workers):
        time.sleep(2)
        before = world.calls()
        time.sleep(seconds)
        after = world.calls()
    made = {name: (after[name] - before.get(name, 0)) / seconds for name in after if name != "info"}
    inside = made.pop("exists", 0.0) + made.pop("time", 0.0)  # commands of the scripts
    sent = sum(made.values())
    say(f"idle pool of {workers}: {sent:.1f} commands sent a second, which made {inside:.1f} inside scripts")
    say("  " + ", ".join(f"{name} {rate:.1f}" for name, rate in sorted(made.items()) if rate))


def spread(what: str, seconds: list[float]) -> None:
    p50, p99, most = (1000 * percentile(seconds, share) for share in (0.5, 0.99, 1.0))
    say(f"{what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.1f} ms, n={len(seconds)}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
