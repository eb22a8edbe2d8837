"""``scripts/chaos [--store STORE] [--other STORE] [--hosts 2] [--lanes [N]] [--records] [--slower] …``.

``--only X``: this nemesis alone. ``--keep`` leaves its directory, ``--check LEDGER`` rules on an earlier run's ledger.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.checker import check
from tests.chaos.hosts import are_allowed
from tests.chaos.ledger import read
from tests.chaos.plan import plan_for
from tests.chaos.report import table
from tests.chaos.run import run
from tests.chaos.stores.choice import NAMES


def main() -> int:
    # A signal that ends this process must end the pools and the server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _options()
    if options.check:
        return _rule(options.check)
    folder = Path(tempfile.mkdtemp(prefix="queuepool-chaos-"))
    plan = plan_for(
        options.store,
        slower=options.slower,
        other=options.other,
        **_hosts(options),
        seconds=options.seconds,
        seed=options.seed,
        only=tuple(options.only),
        lanes=options.lanes,
        records=options.records,
    )
    stores = " and ".join(filter(None, (options.store, options.other)))
    sys.stdout.write(f"chaos: {stores}, {options.seconds:g} s, seed {options.seed}, in {folder}\n")
    sys.stdout.flush()
    code = _rule(run(folder, plan))
    if code == 0 and not options.keep:
        shutil.rmtree(folder)
    return code


def _rule(ledger: Path) -> int:
    findings = check(read(ledger))
    sys.stdout.write(table(findings))
    return findings.code


def _hosts(options: argparse.Namespace) -> dict[str, int]:
    """The same number of workers on either host."""
    if options.hosts == 1:
        return {}
    if options.store != "redis":
        sys.exit("chaos: --hosts 2 is for Redis")
    if not are_allowed():
        sys.stdout.write("chaos: network namespaces are not allowed here: both pools are behind a proxy instead\n")
    return {"hosts": 2, "workers": 4, "remote": 4}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/chaos")
    parser.add_argument("--store", choices=NAMES, default="redis", help="what holds the jobs [redis]")
    parser.add_argument("--other", choices=NAMES, default="", help="what holds failed jobs and control keys [the same]")
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1, help="2: each pool in a network of its own")
    parser.add_argument(
        "--lanes", type=int, nargs="?", const=20, default=0, metavar="N", help="and a pool of N [20] jobs a worker"
    )
    parser.add_argument("--slower", action="store_true", help="at a database's pace: for a machine that others crowd")
    parser.add_argument("--records", action="store_true", help="the pools keep a record of each attempt")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the nemesis is at work [60]")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the order of faults [random]")
    parser.add_argument("--only", action="append", default=[], metavar="NEMESIS", help="this one; may be repeated")
    parser.add_argument("--keep", action="store_true", help="leave the directory even when all is well")
    parser.add_argument("--check", type=Path, metavar="LEDGER", help="rule on the ledger of an earlier run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
