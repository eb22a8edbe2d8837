"""Looks at the places of limits: ``python -m tests.chaos.seen_places URL PREFIX``, a process of its own for precision.

It writes down places without a lease, and those that are at rest for long while the same jobs wait for them.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from tests.chaos.ledger import Ledger
from tests.chaos.stores.seen import Look, Seen, look_at

#: seconds between two looks; nanoseconds of rest from which on it is written down
_PAUSE, _LONG = 0.04, 200_000_000


class Resting:
    """Of each key: since when a place was free at each look, and no job that waited then has left the line."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[int, frozenset[str]]] = {}

    def see(self, one: Seen, began: int, ended: int, ledger: Ledger) -> None:
        """``began``, ``ended``: around the look, in nanoseconds."""
        since, first = self._since.get(one.key, (ended, one.first))
        if one.free <= 0 or not one.first:
            self._since.pop(one.key, None)
        elif not first <= one.first:
            self._since[one.key] = ended, one.first
        else:
            self._since[one.key] = since, first
            if began - since >= _LONG:
                ledger.write("rest", key=one.key, since=since, until=began, free=one.free, first=min(first))

    def forget(self) -> None:
        """Nothing is known of a time in which nobody looked."""
        self._since.clear()


def watch(look: Look, ledger: Ledger) -> None:
    """Until the run ends this process."""
    resting, known = Resting(), set[tuple[str, str]]()
    while True:
        began = time.monotonic_ns()
        try:
            moment = look()
        except Exception:  # whatever a driver says while the store is away
            resting.forget()
        else:
            ended = time.monotonic_ns()
            for one in moment.keys:
                resting.see(one, began, ended, ledger)
            for holder, key in sorted({*moment.without_lease} - known):
                ledger.write("no_lease", key=key, holder=holder)
            known = {*moment.without_lease}
        time.sleep(_PAUSE)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    watch(look_at(*sys.argv[1:]), Ledger(os.environ["CHAOS_LEDGER"]))
