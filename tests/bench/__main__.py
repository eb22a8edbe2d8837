"""Measure, and print one table: ``scripts/bench [--quick] [--store redis|sqlite|postgres|mariadb]``."""

from __future__ import annotations

import argparse
import os
import platform

from tests.bench import redis_figures, sql_figures
from tests.bench.tables import STORES
from tests.bench.words import say


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure on this machine.")
    parser.add_argument("--store", choices=["redis", *STORES], help="this one only")
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    only = parser.parse_args().store
    say(f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.platform()}")
    if only in (None, "redis"):
        redis_figures.measure()
    for store in STORES if only is None else [only]:
        if store in STORES:
            sql_figures.measure(store)


if __name__ == "__main__":
    main()
