"""The faults of one round, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.bench.many_hosts.pool_host import PoolHost
from tests.bench.many_hosts.run import Run

#: by the names that the chaos checker knows
CUT, DEAF, LOST = "blackhole", "one_way", "kill_host"


def play_round(run: Run) -> None:
    """Every fault once: networks for less than a lease and for longer, lost hosts, and one while others are cut off."""
    plan = run.plan
    run.rest(plan.short)
    for how in (CUT, DEAF):
        with _apart(run, how, run.some(plan.part)):
            run.rest(plan.short)
        run.rest(plan.short)
    with _lost(run, run.some(plan.few, may_be_lost=True)):
        run.rest(plan.short)
        run.add(plan.few)
        run.rest(plan.long)
    with _apart(run, DEAF, run.some(plan.part)):
        run.rest(plan.long)
    half = run.some(max(1, plan.hosts // 2))
    with _apart(run, CUT, half):
        others = [host for host in run.some(plan.hosts, may_be_lost=True) if host not in half]
        with _lost(run, others[:1]):
            run.add(len(others[:1]))
            run.rest(plan.long)
    run.rest(plan.short)


@contextmanager
def _apart(run: Run, how: str, hosts: Sequence[PoolHost]) -> Iterator[None]:
    """Their network fails meanwhile."""
    run.ledger.write("nemesis", name=how, on=1)
    for host in hosts:
        run.ledger.write("hit", host=host.name, how=how, on=1)
        (host.port.cut if how == CUT else host.port.deafen)()
    try:
        yield
    finally:
        for host in hosts:
            host.port.heal()
            run.ledger.write("hit", host=host.name, how=how, on=0)
        run.ledger.write("nemesis", name=how, on=0)


@contextmanager
def _lost(run: Run, hosts: Sequence[PoolHost]) -> Iterator[None]:
    """They never return; until the end of this, their leases have ended."""
    run.ledger.write("nemesis", name=LOST, on=1)
    for host in hosts:
        run.ledger.write("hit", host=host.name, how=LOST, on=1)
        run.lose(host)
    try:
        yield
    finally:
        run.ledger.write("nemesis", name=LOST, on=0)
