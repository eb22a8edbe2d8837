"""``scripts/bench --hosts [N] [--workers N] [--jobs N] [--rounds N] [--seed N] [--keep]``; as root."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.bench.many_hosts.clock import can_be_wrong
from tests.bench.many_hosts.faults import play_round
from tests.bench.many_hosts.plan import Plan
from tests.bench.many_hosts.run import Run
from tests.bench.many_hosts.story import told
from tests.bench.words import say
from tests.chaos.checker import check
from tests.chaos.hosts import are_allowed
from tests.chaos.ledger import read
from tests.chaos.report import table


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all hosts end with us
    flags = _flags()
    if not are_allowed():
        sys.exit("scripts/bench --hosts needs root, and ip, nsenter, unshare and setpriv: its hosts are namespaces")
    if not can_be_wrong():
        sys.exit("scripts/bench --hosts needs cc: the clocks of two hosts are wrong")
    folder = Path(tempfile.mkdtemp(prefix="queuepool-hosts-"))
    plan = Plan(hosts=flags.hosts, workers=flags.workers, jobs=flags.jobs, rounds=flags.rounds, seed=flags.seed)
    say(f"{plan.hosts} hosts of {plan.workers}, {plan.jobs:,} jobs, seed {plan.seed}, in {folder}")
    _play(folder, plan)
    code = _rule(folder / "ledger")
    if code == 0 and not flags.keep:
        shutil.rmtree(folder)
    return code


def _play(folder: Path, plan: Plan) -> None:
    run = Run(folder, plan, plan.rounds * plan.seconds_of_round)
    try:
        run.start()
        for _ in range(plan.rounds):
            play_round(run)
        run.end()
    finally:
        run.take_down()


def _rule(ledger: Path) -> int:
    findings, story = check(read(ledger)), told(read(ledger))
    sys.stdout.write(table(findings))
    for line in story.lines():
        say(line)
    return findings.code or (1 if story.unexplained else 0)


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench --hosts", description="Many hosts on one store, and faults.")
    parser.add_argument("hosts", type=int, nargs="?", default=4, help="at least 4 [4]")
    parser.add_argument("--workers", type=int, default=1, help="of each host [1]")
    parser.add_argument("--jobs", type=int, default=2_000, help="all in all [2000]")
    parser.add_argument("--rounds", type=int, default=1, help="of all faults; each takes about a minute [1]")
    parser.add_argument("--seed", type=int, default=1, help="which hosts are hit [1]")
    parser.add_argument("--keep", action="store_true", help="leave the directory even when all is well")
    flags = parser.parse_args()
    if flags.hosts < 4:
        parser.error("at least 4 hosts: two have wrong clocks and stay to the end, others are lost")
    return flags


if __name__ == "__main__":
    sys.exit(main())
