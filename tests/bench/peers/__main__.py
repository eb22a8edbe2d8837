"""Measure all queues beside each other; ``scripts/bench`` says how it is called."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from tests.bench.peers import chart, elsewhere, report
from tests.bench.peers.aims import OURS
from tests.bench.peers.elsewhere import REQUIREMENTS, pinned
from tests.bench.peers.peer import ON_POSTGRES, Peer
from tests.bench.peers.plan import CHARTED, EVERY, Case, Results, interleaved
from tests.bench.peers.stage import Stage, stage
from tests.bench.rig import ROOT
from tests.bench.words import QUICK

T = TypeVar("T")
_MODULES = ["queuepool", "huey", "taskiq", "laravel", "saq", "celery", "dramatiq", "rq"]
#: each in an environment of its own
ELSEWHERE = ["arq", "streaq", "procrastinate", "oban", "pgqueuer"]


def main() -> None:
    flags = _flags()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers and servers end with us
    into = flags.into or ROOT / ("build" if QUICK or flags.only or flags.cases or flags.store else "docs")
    into.mkdir(parents=True, exist_ok=True)
    cases = [case for case in _chosen(EVERY, flags.cases, lambda case: case.title) if _is_on(flags.store, case)]
    with stage(has_postgres=any(case.field in ON_POSTGRES for case in cases)) as world, ExitStack() as stack:
        there = [stack.enter_context(elsewhere.found(name)) for name in ELSEWHERE]
        everybody = [peer for name in _MODULES for peer in _of(name)] + [peer for one in there for peer in one.peers]
        peers = _chosen(everybody, flags.only and f"{OURS},{flags.only}", lambda peer: peer.name)
        about, results = _about(world, [one.about for one in there]), Results()
        for case in cases:
            results[case.title] = interleaved(world, peers, case)
            # Each time: who stops it in between has what was measured so far.
            (into / "benchmarks.md").write_text(report.written(results, peers, about, world.asides))
            (into / "benchmarks.svg").write_text(chart.drawn(_panels(results)))


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench --peers", description="Measure beside other queues.")
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    parser.add_argument("--store", choices=["redis", "postgres"], help="the cases on this one alone")
    parser.add_argument("--only", default="", metavar="NAME,…", help="these queues beside it, by a part of their names")
    parser.add_argument("--cases", default="", metavar="WORD,…", help="these cases, by a part of their titles")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where the report goes: docs, or build if in part")
    return parser.parse_args()


def _of(name: str) -> list[Peer]:
    """Imported late: its module opens its connection to where the stage is."""
    peers: list[Peer] = import_module(f"tests.bench.peers.with_{name}").PEERS
    return peers


def _chosen(everybody: list[T], words: str, name: Callable[[T], str]) -> list[T]:
    wanted = [word.lower() for word in words.split(",") if word]
    return [one for one in everybody if not wanted or any(word in name(one).lower() for word in wanted)]


def _is_on(store: str | None, case: Case) -> bool:
    return store is None or (store == "postgres") == (case.field in ON_POSTGRES)


def _about(world: Stage, apart: list[str]) -> list[str]:
    packages = ["queuepool-worker", *pinned(REQUIREMENTS / "together.txt")]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    server = world.server.info("server")["redis_version"]
    rounds = "few rounds (`--quick`)" if QUICK else "three rounds; nine of no-ops with 2 workers"
    return [
        f"{_processor()}, {os.cpu_count()} processors, {platform.platform()}",
        f"Python {platform.python_version()}, Redis {server}; {versions}",
        *apart,
        rounds,
        *(
            f"a server {1000 * delay:g} ms away answers a PING in {world.ping(delay):.2f} ms"
            for delay in (0, 0.001, 0.002)
        ),
    ]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _panels(results: Results) -> dict[str, dict[str, float]]:
    shown = [case for case in CHARTED if case.title in results]
    return {f"{case.title}, {case.unit}": _medians(results[case.title]) for case in shown}


def _medians(values: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(figures) for name, figures in values.items()}


if __name__ == "__main__":
    main()
