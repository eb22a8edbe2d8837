"""One fault at a time, in an order drawn from the seed; a quarter of the time, none.

A nemesis is a generator function: it injects a fault, and yields the seconds until the next one. What must be undone it
undoes in ``finally``. Clocks stay as they are: the store's clock is the machine's, so a jump here would hit all that
runs. Tests with the store's test clock show that jumps do no harm.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator

from tests.chaos import at_cancels, at_failed, at_limits, at_other, at_processes, at_stops, at_surroundings, scan
from tests.chaos.laravel import laravel_too
from tests.chaos.rig import Rig
from tests.chaos.stores.base import Nemeses


def nemeses(rig: Rig) -> Nemeses:
    """All that this run may meet: those of the processes are the same for every store."""
    own = {
        **at_processes.NEMESES,
        **at_stops.NEMESES,
        **at_surroundings.NEMESES,
        **at_failed.NEMESES,
        **rig.store.nemeses,
        "laravel": (laravel_too, 2),
    }
    own |= at_surroundings.ON_A_DISK_OF_ITS_OWN if rig.run_dir.is_mount() else {}
    own |= at_limits.NEMESES if rig.plan.limits else {}
    own |= at_cancels.NEMESES if "cancel_jobs" in rig.plan.only else {}
    return own | at_other.NEMESES if rig.other else own


def inject_faults(rig: Rig) -> None:
    """Until the plan's time is over."""
    end = time.monotonic() + rig.plan.seconds
    for name in _choices(rig):
        left = end - time.monotonic()
        if left <= 0:
            return
        seconds = min(rig.chance.uniform(*rig.plan.phase), left)
        if name == "calm":
            _calm(rig, seconds)
        else:
            _phase(rig, name, seconds)


def _choices(rig: Rig) -> Iterator[str]:
    """Three nemeses, then a calm, for ever; each nemesis comes before any comes again."""
    known = [name for name, (_, weight) in nemeses(rig).items() for _ in range(weight)]
    wanted = [name for name in known if not rig.plan.only or name in rig.plan.only]
    if not wanted:  # it would look for one for ever
        sys.exit(f"chaos: no such nemesis here: {', '.join(rig.plan.only)}; there are {', '.join(sorted(set(known)))}")
    while True:
        rig.chance.shuffle(wanted)
        for place, name in enumerate(wanted):
            yield name
            if place % 3 == 2 or len(wanted) < 3:
                yield "calm"


def _phase(rig: Rig, name: str, seconds: float) -> None:
    rig.ledger.write("nemesis", name=name, on=1)
    faults = nemeses(rig)[name][0](rig)
    try:
        _inject(rig, faults, time.monotonic() + seconds, with_kills=rig.chance.random() < rig.plan.with_kills)
    finally:
        faults.close()  # type: ignore[attr-defined]
        for store in rig.stores:
            store.wait_until_ready()
        scan.note_locks(rig)
        rig.ledger.write("nemesis", name=name, on=0)


def _inject(rig: Rig, faults: Iterator[float], end: float, *, with_kills: bool) -> None:
    """Harm and, beside it, kills of workers."""
    killing = at_processes.kill_sometimes(rig) if with_kills else at_processes.leave_in_peace(rig)
    due = {faults: 0.0, killing: 0.0}
    while (now := time.monotonic()) < end:
        for each, at in due.items():
            if now >= at:
                due[each] = next(each) + time.monotonic()  # in this order: it may have taken its time
        rig.rest(max(0.0, min(end, *due.values()) - time.monotonic()))


def _calm(rig: Rig, seconds: float) -> None:
    """Nothing happens, and every pool must be whole again."""
    rig.ledger.write("nemesis", name="calm", on=1)
    rig.rest(seconds)
    if seconds >= 1.0:
        for pool in rig.pools:
            pool.note_size(rig.plan.whole)
        scan.note_resources(rig)
        scan.note_copies(rig)
        scan.note_locks(rig)
    rig.ledger.write("nemesis", name="calm", on=0)


def stop_all(rig: Rig) -> None:
    """The pools, in order; those that will not are an event."""
    for pool in rig.pools:
        code = pool.stop(within=rig.plan.stop)
        if code != 0:
            rig.ledger.write("bad_stop", pool=pool.name[:4], code=code)
            if code is None and pool.process:
                pool.process.send_signal(signal.SIGKILL)
