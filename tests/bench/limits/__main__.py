"""What limits cost: ``scripts/bench --limits [--quick] [--store NAME] [--cases WORD,...]``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.bench.limits import found_place, parked_behind, tenants, through
from tests.bench.limits.without import instructions
from tests.bench.rig import Rig, redis_rig
from tests.bench.tables import STORES, sql_rig
from tests.bench.words import QUICK, say

_MODULE = "tests.bench.limits.jobs"
_CASES: dict[str, Callable[[Rig], None]] = {
    "place": found_place.measure,
    "behind": parked_behind.measure,
    "through": through.measure,
    "tenants": tenants.measure,
}
_WITHOUT = "without"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench --limits", description="What limits of jobs cost.")
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    parser.add_argument("--store", choices=["redis", *STORES], help="this one only")
    parser.add_argument("--cases", default=",".join([_WITHOUT, *_CASES]), metavar="WORD,…", help="default: %(default)s")
    flags = parser.parse_args()
    cases = flags.cases.split(",")
    say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if _WITHOUT in cases and not QUICK and flags.store in (None, "redis"):
        instructions()
    for store in ["redis", *STORES] if flags.store is None else [flags.store]:
        for case, measure in _CASES.items():
            if case in cases:
                say(f"\n{store}, {case}; load {os.getloadavg()[0]:.1f}")
                with world(store) as rig:
                    measure(rig)


def world(store: str) -> AbstractContextManager[Rig]:
    """A private server of this kind."""
    return redis_rig(_MODULE) if store == "redis" else sql_rig(store, _MODULE)


if __name__ == "__main__":
    main()
