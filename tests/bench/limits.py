"""What limits cost on Redis: ``scripts/bench --limits [--quick]``.

A job that finds its place beside a plain one, in a worker that takes them one by one; and what the server does for one
start, with few and with very many parked jobs behind it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from queuepool import configure
from queuepool.payload.lease import NOTHING, Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word
from queuepool.stores.contract import NewJob
from tests.bench import app
from tests.bench.rig import ROOT, Rig, redis_rig, until
from tests.bench.words import QUICK, rates, ratios, say

_JOBS, _ROUNDS, _STARTS = (2000, 2, 300) if QUICK else (10_000, 5, 2000)
_PARKED = (10, 100_000) if QUICK else (10, 1_000_000)


def main() -> None:
    with redis_rig() as rig:
        beside_plain_jobs(rig)
        tenants(rig)
        for parked in _PARKED:
            for partitions in (1, parked // 10):
                starts(rig, parked, partitions)


def beside_plain_jobs(rig: Rig) -> None:
    worker(rig, "noop", 500)
    pairs = [(worker(rig, "noop", _JOBS), worker(rig, "held", _JOBS)) for _ in range(_ROUNDS)]
    plain, limited = ([one[number] for one in pairs] for number in (0, 1))
    rates("plain jobs, 1 worker, one by one", plain)
    rates("jobs that find their place", limited)
    ratios("as much time as a plain one", plain, limited)


def worker(rig: Rig, job: str, jobs: int) -> float:
    """Jobs a second of ``queuepool work``, by the server's clock from its first reserve to its last."""
    rig.queue.clear()
    rig.queue.bulk([(job, {}) for _ in range(jobs)])
    command = [sys.executable, "-m", "tests.bench.lone_worker", *rig.flags()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True, text=True)
    return jobs / float(done.stdout)


def tenants(rig: Rig) -> None:
    """Three tenants dispatch one after the other, to two pools: when the first and the last job of each has begun."""
    configure(rig.queue)
    counts = (1000, 100, 1) if QUICK else (10_000, 100, 1)
    other = ("--runtime-dir", str(rig.path / "other"))
    with rig.pool(2), rig.pool(2, *other):
        rig.forget()
        began = time.monotonic()
        for tenant, count in enumerate(counts):
            app.shared.bulk([{"tenant": tenant} for _ in range(count)])
        dispatched = time.monotonic() - began
        until(lambda: len(rig.trail()) == sum(counts), within=300)
    for tenant, count in enumerate(counts):
        moments = [at - began for stamp, at, _ in rig.trail() if stamp == tenant]
        say(f"tenant with {count:,} jobs: first after {moments[0]:.2f} s, last after {moments[-1]:.2f} s")
    say(f"  all were dispatched after {dispatched:.2f} s")


def starts(rig: Rig, parked: int, partitions: int) -> None:
    """The server's time for the end of one job, and the reserve and the start of the next."""
    rig.stores.client.command("FLUSHALL")
    store = rig.stores.queue
    before = _memory(rig)
    tag, began = store.join(), time.monotonic()
    for first in range(0, parked + 1, 1000):
        names = [f"j{number}" for number in range(first, min(first + 1000, parked + 1))]
        jobs = [NewJob(_payload(name), None, job_word(name), [_asked(int(name[1:]) % partitions)]) for name in names]
        store.push("default", jobs)
    took, bytes_each = time.monotonic() - began, (_memory(rig) - before) / max(parked, 1)
    running = _start(rig, tag)
    spent = {"end": 0.0, "reserve": 0.0, "start": 0.0}
    count = min(_STARTS, parked)
    for _ in range(count):
        running = _next(rig, tag, running, spent)
    each = ", ".join(f"{what} {1e6 * seconds / count:.1f}" for what, seconds in spent.items())
    say(
        f"{parked:,} parked in {partitions:,} partitions: {each} us of the server for a start; "
        f"parked at {parked / took:,.0f}/s, {bytes_each:.0f} bytes each with payloads of {len(_payload('j0'))}"
    )


def _next(rig: Rig, tag: int, running: Lease, spent: dict[str, float]) -> Lease:
    """End the running job and start the next, and add what that has cost."""
    store, times = rig.stores.queue, [_script_seconds(rig)]
    store.finish(running, NOTHING)
    times.append(_script_seconds(rig))
    [lease] = store.reserve(["default"], tag, 1).leases
    times.append(_script_seconds(rig))
    store.limits.enter(holding(lease), _id(lease), [_asked(0)])
    times.append(_script_seconds(rig))
    for number, what in enumerate(spent):
        spent[what] += times[number + 1] - times[number]
    return holding(lease)


def _start(rig: Rig, tag: int) -> Lease:
    [lease] = rig.stores.queue.reserve(["default"], tag, 1).leases
    rig.stores.queue.limits.enter(holding(lease), _id(lease), [_asked(0)])
    return holding(lease)


def _asked(partition: int) -> PlaceAsked:
    return PlaceAsked("bench", f"p{partition}" if partition else NO_PART, 1)


def _payload(name: str) -> bytes:
    return b'{"uuid":"%s","displayName":"noop","job":"noop","data":{"padding":"%s"},"id":"%s","attempts":0}' % (
        name.encode(), b"x" * 280, name.encode(),
    )  # fmt: skip


def _id(lease: Lease) -> str:
    return lease.receipt.split(b'"id":"')[1].split(b'"')[0].decode()


def _script_seconds(rig: Rig) -> float:
    """Of the server, in scripts since it began."""
    stats = rig.stores.client.command("INFO", "commandstats")
    return (
        sum(int(stats[f"cmdstat_{name}"]["usec"]) for name in ("evalsha", "eval") if f"cmdstat_{name}" in stats) / 1e6
    )


def _memory(rig: Rig) -> int:
    return int(rig.stores.client.command("INFO", "memory")["used_memory"])


if __name__ == "__main__":
    main()
