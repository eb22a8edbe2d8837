"""What is measured on Redis."""

from __future__ import annotations

import statistics
import time

import redis

from tests.bench import latency, safety, throughput
from tests.bench.rig import Rig, redis_rig
from tests.bench.words import QUICK, say, spread


def measure() -> None:
    with redis_rig() as world:
        server = world.stores.client.command("INFO", "server")["redis_version"]
        say(f"Redis {server}, redis-py {redis.__version__}")
        one_at_a_time(world)
        safety.measure(world)
        safety.measure_meters(world)
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
        before, busy = world.calls(), world.seconds_of_processor()
        time.sleep(seconds)
        after, share = world.calls(), (world.seconds_of_processor() - busy) / seconds
    made = {name: (after[name] - before.get(name, 0)) / seconds for name in after if name != "info"}
    inside = made.pop("exists", 0.0) + made.pop("time", 0.0)  # commands of the scripts
    sent = sum(made.values())
    say(
        f"idle pool of {workers}: {sent:.1f} commands sent a second, which made {inside:.1f} inside scripts; "
        f"{share:.1%} of a processor"
    )
    say("  " + ", ".join(f"{name} {rate:.1f}" for name, rate in sorted(made.items()) if rate))
