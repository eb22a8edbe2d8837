"""What is measured on each database."""

from __future__ import annotations

import time

import sqlalchemy

from tests.bench import beside_laravel, latency, plans, throughput
from tests.bench.rig import Rig
from tests.bench.tables import execute, kind, sql_rig
from tests.bench.words import QUICK, rates, ratios, say, spread

_VERSION = {"sqlite": "SELECT sqlite_version()"}
#: statements that the server has executed: PostgreSQL counts transactions only
_COUNTS = {
    "postgresql": "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database",
    "mariadb": "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUERIES'",
}
#: seconds between two looks of a PostgreSQL worker at what it is not told of
_SLEEP = 1.0


def measure(store: str) -> None:
    with sql_rig(store) as rig:
        say(f"\n{store} {version(rig)}, SQLAlchemy {sqlalchemy.__version__}")
        bare(rig)
        drain(rig)
        with rig.pool(2, "--sleep", str(_SLEEP)):
            spread("push to start, idle pool of 2", latency.push_to_start(rig, 60 if QUICK else 500))
            if store != "sqlite":
                seconds = beside_laravel.pushed_by_laravel(rig, 8 if QUICK else 40)
                spread(f"  pushed by Laravel, --sleep {_SLEEP:g}", seconds)
        idle(rig)
        plans.compare(rig, 50 if QUICK else 300)
        plans.after_a_flood(rig, 20 if QUICK else 100)


def version(rig: Rig) -> str:
    return str(execute(rig, _VERSION.get(kind(rig), "SELECT version()"))[0][0])


def bare(rig: Rig) -> None:
    jobs, rounds = (1600, 2) if QUICK else (8000, 5)
    throughput.bare_loop(rig, 800)
    for batch in (1, 16):
        rates(f"bare loop, {batch} at a time", [throughput.bare_loop(rig, jobs, batch) for _ in range(rounds)])


def drain(rig: Rig) -> None:
    workers = 1 if kind(rig) == "sqlite" else 2
    jobs, rounds = (1000, 2) if QUICK else (4000, 5)
    ours, singly, theirs = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        singly.append(beside_laravel.ours(rig, jobs, workers, "--reserve-ahead", "1"))
        ours.append(beside_laravel.ours(rig, 10 * jobs, workers))  # so that it lasts about as long
        theirs.append(beside_laravel.theirs(rig, jobs, workers))
    rates(f"pool of {workers}, no-op jobs", ours)
    rates("  reserving one at a time", singly)
    rates(f"  Laravel's {workers} beside it", theirs)
    ratios("ratio, pair by pair", ours, theirs)
    ratios("ratio, reserving one at a time", singly, theirs)


def idle(rig: Rig) -> None:
    workers, seconds = 4, 5 if QUICK else 20
    with rig.pool(workers):
        time.sleep(2)
        before, busy = _count(rig), rig.seconds_of_processor()
        time.sleep(seconds)
        share, after = (rig.seconds_of_processor() - busy) / seconds, _count(rig)
    unit = "transactions" if kind(rig) == "postgresql" else "statements"
    counted = "" if after is None or before is None else f"{(after - before) / seconds:.1f} {unit} a second, "
    say(f"idle pool of {workers}: {counted}{share:.1%} of a processor")


def _count(rig: Rig) -> int | None:
    """``None``: nobody counts them."""
    line = _COUNTS.get(kind(rig))
    return int(execute(rig, line)[0][0]) if line else None
