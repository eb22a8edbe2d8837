"""What workers cost a store, as a table, as a formula, and reckoned by it for more of them: a part of docs/scale.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: the part's heading: what stands before it in the page is written by ``scripts/bench --scale``
HEADING = "## What workers cost a store"
REDIS, POSTGRES, POOLED = "Redis", "PostgreSQL", "PostgreSQL behind PgBouncer, in transaction mode"
#: pools, and workers of each
_BEYOND = [(20, 10), (20, 50), (250, 4), (1000, 1)]


class Cost(NamedTuple):
    """Of so many workers in so many pools. ``requests``: what was sent to Redis, or transactions of a database.

    Those that are idle: a second; and of busy ones, with jobs of ten milliseconds: of each job.
    """

    pools: int
    workers: int
    connections: int
    idle_requests: float
    #: those inside of scripts count too; 0 of a database
    idle_commands: float
    #: of a processor
    idle_percent: float
    rate: float
    requests: float
    commands: float
    microseconds: float


class Formula(NamedTuple):
    """Of something idle: so much for each worker, and for each pool with its steward."""

    of_worker: float
    of_pool: float

    def at(self, pools: int, workers: int) -> float:
        return self.of_worker * workers + self.of_pool * pools


def formula(costs: Sequence[Cost], what: Callable[[Cost], float]) -> Formula:
    """From the first two, which differ by their workers alone."""
    small, large = costs[:2]
    of_worker = (what(large) - what(small)) / (large.workers - small.workers)
    return Formula(of_worker, (what(small) - of_worker * small.workers) / small.pools)


def write(page: Path, about: str, measured: Mapping[str, Sequence[Cost]]) -> None:
    """In the place of what the page had of this; ``measured``: by store."""
    before = page.read_text().partition(HEADING)[0] if page.exists() else ""
    page.write_text(f"{before.rstrip()}\n\n{text(about, measured)}")


def kept(page: Path) -> str:
    """This part of the page as it is, behind an empty line; empty if it has none."""
    part = "".join(page.read_text().partition(HEADING)[1:]) if page.exists() else ""
    return f"\n{part}" if part else ""


def text(about: str, measured: Mapping[str, Sequence[Cost]]) -> str:
    """The part, as Markdown; ``about``: the machine and the time."""
    parts = [HEADING, _INTRODUCTION, f"- {about}", _RECKONED]
    for store, costs in measured.items():
        requests = "requests" if store == REDIS else "transactions"
        parts += [f"### {store}", _table(costs, requests), _said(costs, requests), _beyond(costs, requests)]
    return "\n\n".join([*parts, _SHARING]) + "\n"


def _table(costs: Sequence[Cost], requests: str) -> str:
    idle = ["connections", f"idle: {requests}/s", "% of a processor"]
    busy = ["busy: jobs/s", f"{requests} a job", "µs of the server a job"]
    has_commands = any(cost.commands for cost in costs)
    if has_commands:
        idle[2:2], busy[2:2] = ["commands/s"], ["commands a job"]
    rows = [["pools × workers", *idle, *busy]]
    for cost in sorted(costs, key=lambda cost: (cost.workers, cost.pools)):
        inside = [cost.idle_commands, cost.commands] if has_commands else []
        figures = [cost.connections, cost.idle_requests, *inside[:1], cost.idle_percent]
        figures += [cost.rate, cost.requests, *inside[1:], cost.microseconds]
        rows.append([f"{cost.pools} × {cost.workers // cost.pools}", *map(_number, figures)])
    rows.insert(1, ["---:"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _said(costs: Sequence[Cost], requests: str) -> str:
    """The formulas, and how far they miss what they were not made from."""
    connections, asked = formula(costs, lambda cost: cost.connections), formula(costs, lambda cost: cost.idle_requests)
    lines = [
        f"- connections = {_lent(costs) or _terms(connections)}",
        f"- {requests} a second of idle pools = {_terms(asked)}",
        f"- {requests} a second of busy ones: up to {_number(max(cost.requests for cost in costs))} for each job more",
    ]
    others = [
        f"{cost.pools} × {cost.workers // cost.pools}: {_number(asked.at(cost.pools, cost.workers))} reckoned, "
        f"{_number(cost.idle_requests)} measured"
        for cost in costs[2:]
    ]
    tried = f"Of those from which the formula was not made ({requests}/s): {'; '.join(others)}."
    return "\n".join(lines) + f"\n\n{tried}"


def _beyond(costs: Sequence[Cost], requests: str) -> str:
    connections, asked = formula(costs, lambda cost: cost.connections), formula(costs, lambda cost: cost.idle_requests)
    share = formula(costs, lambda cost: cost.idle_percent)
    rows = [["pools × workers, reckoned", "connections", f"idle: {requests}/s", "% of a processor"], ["---:"] * 4]
    for pools, each in _BEYOND:
        place = pools, pools * each
        figures = map(_number, (asked.at(*place), max(share.at(*place), 0.0)))
        rows.append([f"{pools:,} × {each}", _lent(costs) or _number(connections.at(*place)), *figures])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _lent(costs: Sequence[Cost]) -> str:
    """Words for the server's connections where a pooler lends them; '' = each is a client's own."""
    return "" if all(cost.connections >= cost.workers for cost in costs) else "at most `default_pool_size`"


def _terms(one: Formula) -> str:
    return f"{_number(one.of_worker)} × workers + {_number(one.of_pool)} × pools"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 or figure == int(figure) else f"{figure:.2f}"


_INTRODUCTION = """\
Written by `scripts/bench --costs`: what idle and busy pools ask of their store, and how many connections they have
there, as the server itself counts it. Busy pools run jobs of 10 ms, of which their workers take one or two at once (of
shorter ones they take more, which is cheaper for each). On a machine that others crowd there are fewer jobs a second,
and each takes more of the server."""
_RECKONED = """\
The formulas are made from two measurements that differ by their workers alone; the others show whether they hold. So
many workers as are reckoned do not fit on the machine that measures. The share of a processor is reckoned from
hundredths, so take it as an order of magnitude. What the formulas do not know: each pool that scales by itself reads
the notices of all pools on its store, and those become longer with every pool."""
_SHARING = """\
### Fewer connections to a database

A worker keeps one connection, as it waits for the next job on it. A steward keeps one, and on Redis a second one, which
waits for the orders of operators; once there are flows one more, and one more if failed jobs or control keys are in
another store. So count with three. To Redis a connection costs next to nothing (`maxclients` is 10,000 by default). In
PostgreSQL each is a process, and `max_connections` is 100. In this order:

1. **Fewer workers that do more.** Jobs that wait for something else are coroutines: with
   [`concurrency = 20`](async.md) one worker runs twenty of them, with a few connections instead of twenty.
2. **Fewer and larger pools.** Count 13 connections for ten workers in one pool, and 40 for ten pools of one.
3. **A larger `max_connections`.** Some hundreds are no burden while most of them wait. Count with
   workers + 3 × pools + the connections of your producers, and a few for `queuepool check` and other commands.
4. **PgBouncer in transaction mode** lends a session for each transaction, so that thousands of clients share a few.
   queuepool notices it by itself, needs no setting for it, and `queuepool check` says so. What it costs: nothing is
   prepared, and workers do not hear of a push but look for it, at first each 2 ms, then up to each 50 ms. So an idle
   worker asks more of the server than without a pooler (a pool of four: 80 to 109 transactions a second instead of
   10; one of sixteen: 343 instead of 23): PgBouncer saves connections, not work. At some twenty for
   each idle worker, a thousand of them would ask 20,000 times a second: too much, so bring their number down first.
   Producers may go through the pooler while the pools do not.

```ini
; pgbouncer.ini
[databases]
app = host=10.0.0.5 port=5432
[pgbouncer]
pool_mode = transaction
default_pool_size = 20
max_client_conn = 5000
```

```ini
; pool.ini
[connection]
url = postgresql://app:${DB_PASSWORD}@pgbouncer:6432/app
```

In session mode each of our processes keeps a session, so nothing is shared. Statement mode has no transactions and is
refused. MariaDB and MySQL have a thread for each connection, not a process, so that their `max_connections` (151)
can be raised further."""
