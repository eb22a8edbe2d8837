"""Measure against how much there is: ``scripts/bench --scale [--quick] [--store NAME] [--cases WORD,…]``."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from pathlib import Path

import redis
import sqlalchemy

from tests.bench import sql_figures
from tests.bench.rig import ROOT, Rig, redis_rig
from tests.bench.scale import costs_report, curves, report
from tests.bench.scale.growth import Table
from tests.bench.scale.sizes import EVERY, JOBS, Row, Scale
from tests.bench.tables import STORES, sql_rig
from tests.bench.words import QUICK, say

#: of a database: it passes delayed rows in front one by one
_MOST_ROWS = 10_000 if QUICK else 100_000


def main() -> None:
    flags = _flags()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the pool and the server end with us
    into = flags.into or ROOT / ("build" if QUICK or flags.cases else "docs")
    into.mkdir(exist_ok=True)
    wanted = [word for word in flags.cases.split(",") if word]
    there = EVERY if flags.store == "redis" else JOBS
    scales = [scale for scale in there if not wanted or any(word in scale.title for word in wanted)]
    tables = dict[str, Table]()
    with redis_rig() if flags.store == "redis" else sql_rig(flags.store) as world:
        about = _about(world, flags.store)
        for scale in scales:
            tables[scale.title] = {size: _measured(world, scale, size) for size in _sizes(scale, flags.store)}
    name = "scale" if flags.store == "redis" else f"scale-{flags.store}"
    page = into / f"{name}.md"
    page.write_text(report.written(tables, scales, about, f"{name}.svg") + costs_report.kept(page))
    (into / f"{name}.svg").write_text(curves.drawn(report.panels(tables, scales)))
    say(report.statement(tables, scales))


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench --scale", description="Measure against how much there is.")
    parser.add_argument("--quick", action="store_true", help="fewer of everything, and no million")
    parser.add_argument("--store", choices=["redis", *STORES], default="redis", help="on another, of jobs alone")
    parser.add_argument("--cases", default="", metavar="WORD,…", help="these cases, by a part of their titles")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where the report goes: docs, or build if in part")
    return parser.parse_args()


def _sizes(scale: Scale, store: str) -> list[int]:
    return [size for size in scale.sizes if store == "redis" or size <= _MOST_ROWS]


def _measured(world: Rig, scale: Scale, size: int) -> Row:
    row = scale.measure(world, size)
    say(f"{size:,} {scale.title}: " + "; ".join(f"{column} {figure:,.2f}" for column, figure in row.items()))
    return row


def _about(world: Rig, store: str) -> list[str]:
    if store == "redis":
        server = f"Redis {world.stores.client.command('INFO', 'server')['redis_version']}, redis-py {redis.__version__}"
    else:
        server = f"{store} {sql_figures.version(world)}, SQLAlchemy {sqlalchemy.__version__}"
    return [
        f"{os.cpu_count()} processors, {platform.platform()}",
        f"Python {platform.python_version()}, {server}",
    ]


if __name__ == "__main__":
    main()
