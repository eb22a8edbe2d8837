"""The report: what was measured, on what, how, and where another queue is ahead."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from tests.bench.peers.aims import in_words, is_ours, ratio, reached
from tests.bench.peers.asides import Asides
from tests.bench.peers.deaths import PATIENCE
from tests.bench.peers.jobs import LIMIT
from tests.bench.peers.peer import Peer
from tests.bench.peers.plan import (
    COROUTINES,
    DEATHS,
    DRAINS,
    EVERY,
    LATENCIES,
    MEMORIES,
    ON_POSTGRES,
    PACED_LATENCIES,
    POSTGRES_DRAINS,
    POSTGRES_LATENCIES,
    PUBLIC,
    PUSHES,
    Case,
    Results,
)
from tests.bench.rig import percentile

#: a ratio that counts
_NOISE = 1.05
Cell = Callable[[list[float]], str]


def written(results: Results, peers: list[Peer], about: Sequence[str], asides: Asides) -> str:
    """Markdown; of what was not measured, nothing."""
    parts = ["# Beside other queues", _INTRODUCTION, _listed(about), "![Drained jobs a second](benchmarks.svg)"]
    for title, text, columns, cell in _SECTIONS:
        shown = [case for case in columns if case.title in results]
        if shown:
            parts += [f"## {title}", *text, _table(results, peers, shown, cell)]
        if shown and columns is LATENCIES:
            parts += loads_said(asides)
        rates = [case for case in shown if case.unit == "jobs/s" and columns is not PUSHES]
        if rates:
            parts += [f"{rates[0].ours} is so many times as quick, round by round:", _ratios(results, peers, rates)]
    aims = reached(results)
    parts += ["## Aims", _AIMS, in_words(aims, _grid)] if aims else []
    parts += ["## Where another queue is ahead", _listed(_better(results, peers)) or "Nowhere.", "## Configurations"]
    measured = [peer for peer in peers if any(peer.name in values for values in results.values())]
    parts += [_listed([_configured(peer) for peer in measured]), *said(asides)]
    return "\n\n".join(parts) + "\n"


def _table(results: Results, peers: list[Peer], shown: list[Case], cell: Cell) -> str:
    head = ["", *(f"{case.title} ({case.unit})" for case in shown)]
    names = [peer.name for peer in peers if any(peer.name in results[case.title] for case in shown)]
    return _grid(head, [[name, *(_cell(results[case.title], name, cell) for case in shown)] for name in names])


def _ratios(results: Results, peers: list[Peer], shown: list[Case]) -> str:
    others = [peer.name for peer in peers if not is_ours(peer.name) and peer.name in results[shown[0].title]]
    rows = [[name, *(f"{ratio(results[case.title], name, case.ours):.1f}" for case in shown)] for name in others]
    return _grid(["", *(case.title for case in shown)], rows)


def _cell(values: dict[str, list[float]], name: str, cell: Cell) -> str:
    return cell(values[name]) if name in values else "–"


def _grid(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _median_and_range(values: list[float]) -> str:
    if max(values) > 1e9:
        return f"> {PATIENCE:g}"
    return f"{_number(statistics.median(values))} ({_number(min(values))} to {_number(max(values))})"


def _percentiles(values: list[float]) -> str:
    if math.inf in values:
        return "too many"
    return f"{percentile(values, 0.5):.2f} / {percentile(values, 0.99):.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 1 else f"{value:.1f}"


def _better(results: Results, peers: list[Peer]) -> list[str]:
    lines = [(peer, _ahead(results, peer.name)) for peer in peers if not is_ours(peer.name)]
    return [f"**{peer.name}**: {'; '.join(where.values())}. {_why(peer, where)}" for peer, where in lines if where]


def _why(peer: Peer, where: dict[Case, str]) -> str:
    """A reason for each kind of case, once."""
    return " ".join(dict.fromkeys(peer.strengths.get(case.about) or _REASONS[case.about] for case in where))


def _ahead(results: Results, name: str) -> dict[Case, str]:
    """Where its median is better by more than noise is."""
    found = {}
    for case in EVERY:
        if name in results.get(case.title, ()):
            ours, theirs = (statistics.median(results[case.title][who]) for who in (case.ours, name))
            if (theirs / ours if case.unit == "jobs/s" else ours / theirs) > _NOISE:
                found[case] = f"{case.title} {_number(theirs)} beside {_number(ours)} {case.unit}"
    return found


def _configured(peer: Peer) -> str:
    return f"**{peer.name}**, at {'least' if peer.keeps else 'most'} once: {peer.settings}"


def loads_said(asides: Asides) -> list[str]:
    loads = ", ".join(f"{name} {_number(load.rate)}" for name, load in asides.loads.items())
    limited = ", ".join(name for name, load in asides.loads.items() if load.limited)
    return [
        *([f"At half load they had, in jobs a second: {loads}."] if loads else []),
        *([f"Less than half, as its producer could not push more: {limited}."] if limited else []),
    ]


def said(asides: Asides) -> list[str]:
    """Sentences; of what there is nothing to say, none."""
    fewer = ", ".join(f"{name} {jobs:,}" for name, jobs in asides.fewer.items())
    twice = ", ".join(f"{name} {count}" for name, count in asides.doubles.items() if count)
    return [
        *([f"In the usual comparison fewer jobs ran, and their time was reckoned up: {fewer}."] if fewer else []),
        f"Every job of every run has run. More than once: {twice or 'none'}.",
    ]


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


_INTRODUCTION = """\
Written by `scripts/bench --peers`: all queues in one run, on one machine and one Redis over TCP, round by round in a
random order, each in the configuration that its own documentation recommends for speed. Figures are medians, with the
range in brackets. Each job notes its number, the time and its process in one `write` to one file: the rate is taken
from these times, without the first and the last 15 %, and a run is over when every number is there. How many jobs a
queue is given follows from a short run before: each run is to last about as long, and ends by killing the workers."""
_DRAINS = """\
The queue is full when the workers start. A server that is 1 or 2 ms away is a relay that delays every reply by as
much, however many are on their way; pushes go there directly."""
_LATENCIES = """\
Half load is half of what the queue drained with two workers in this run. Each job has its time, and its latency counts
from that time and not from its push: a push that is late because the one before took long is late for all to see. What
is due is pushed in bulk, by one process beside the workers."""
_PACED = """\
Each is pushed by itself at a random moment of its part of the second, by one process beside the two workers; from
before its push to its first line. A queue that drains less than a quarter more than it would be given here has too
many."""
_COROUTINES = """\
Jobs that await a sleep, in two processes that run many of them at once. The processors' time is that of all processes
of a queue, by the kernel's account, between the begin of the first 15 % and of the first 85 % of the jobs; the memory
is their proportional share (PSS) then, with as many jobs running as may."""
_ON_POSTGRES = """\
PostgreSQL as it comes, on a unix socket, with every commit on the disk; 100 jobs at once in each of two processes."""
_NOOPS_ON_POSTGRES = """\
The same server, with two processes of each queue: jobs that do nothing but note the time. Busy: beside a loop for each
processor that never rests, in the session of the workers, or each in a session of its own, by which Linux shares the
processors."""
_MEMORY = """\
The proportional share (PSS) of all processes, master and helpers included: of queuepool two more than its workers,
master and steward, which watch them and settle what a dead one held."""
_DEATHS = f"""\
A process that runs a job is killed by `kill -9`, and its job starts again. A runaway may run for {LIMIT} s and heeds
nothing: in Python it swallows every exception (in PHP it is a loop as well), in C no line of Python runs; from its
deadline to the end of its process. Each queue is told of the limit in its own way: Celery and Dramatiq as
`time_limit`, RQ as `job_timeout`, the others as `timeout`. What had not happened {PATIENCE:g} s later was waited for
once, all else in every round."""
_PUBLIC = """\
So many jobs that do nothing but note the time, ten workers; the seconds from the start of the workers to the last job,
so what they take to start counts."""
_AIMS = "Set before any of this was measured; each ratio is the median of what it was round by round."
#: why a queue is ahead, where it has no reason of its own
_REASONS = {
    "drain": "It writes less: nothing says what a worker holds, should it die.",
    "many": "For each job there is less to do: no lease, no deadline of its own, no word of whose code runs.",
    "processor": "For each job there is less to do: no lease, no deadline of its own, no word of whose code runs.",
    "sleep": "Between two jobs that sleep there is less to do: nothing is written of who runs what.",
    "push": "Its envelope is smaller than Laravel's.",
    "latency": "It reads and writes less between a push and its start.",
    "memory": "It has no master and no steward that know the store.",
    "death": "It sees sooner that a process is gone.",
}
_SECTIONS: list[tuple[str, list[str], list[Case], Cell]] = [
    ("Drained jobs a second", [_DRAINS], DRAINS, _median_and_range),
    ("Pushed jobs a second", [], PUSHES, _median_and_range),
    ("Push to start, p50 / p99", [_LATENCIES], LATENCIES, _percentiles),
    ("Push to start at a steady rate, p50 / p99", [_PACED], PACED_LATENCIES, _percentiles),
    ("Many coroutines at once", [_COROUTINES], COROUTINES, _median_and_range),
    ("Many coroutines at once, on PostgreSQL", [_ON_POSTGRES], ON_POSTGRES, _median_and_range),
    ("No-ops on PostgreSQL", [_NOOPS_ON_POSTGRES], POSTGRES_DRAINS, _median_and_range),
    ("Push to start on PostgreSQL, p50 / p99", [], POSTGRES_LATENCIES, _percentiles),
    ("Memory", [_MEMORY], MEMORIES, _median_and_range),
    ("Deaths", [_DEATHS], DEATHS, _median_and_range),
    ("The usual comparison", [_PUBLIC], [PUBLIC], _median_and_range),
]
