"""A schedule of every second, which all pools push: each time at most once, and still after all faults (I24).

Its jobs go to a queue that no worker serves, so what is there in the end is what was pushed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings
    from tests.chaos.rig import Rig

QUEUE = "ticks"
#: for the pools' configuration
SCHEDULE = f"""
[schedule:tick]
every = 1s
job = Chaos@tick
queue = {QUEUE}
"""
#: seconds that the last one may be old once the pools are whole, and that they may take to be
_BEHIND, _PATIENCE = 4.0, 30.0
_MOST = 1_000_000


def note_ticks(rig: Rig) -> None:
    """Every time that was pushed."""
    with closing(_queue(rig)) as queue:
        for due in _pushed(queue):
            rig.ledger.write("tick", due=due)


def note_schedule(rig: Rig) -> None:
    """How many seconds ago the last time was pushed, once it is few of them, or after all patience."""
    with closing(_queue(rig)) as queue:
        for _ in range(int(_PATIENCE / 0.2)):
            behind = queue.stores.queue.now() - max(_pushed(queue), default=0)
            if behind < _BEHIND:
                break
            rig.rest(0.2)
    rig.ledger.write("behind", seconds=round(behind, 3))


def _queue(rig: Rig) -> Queue:
    return Queue(ConnectionSettings(url=rig.store.url, prefix=rig.prefix, timeout=10.0))


def _pushed(queue: Queue) -> Iterator[int]:
    for raw in queue.stores.queue.first(QUEUE, _MOST):
        yield int(datetime.fromisoformat(json.loads(raw)["scheduledFor"]).timestamp())


class Ticks:
    """The part of the checker."""

    EVENTS = ("tick", "behind")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._seen: set[int] = set()

    def read(self, event: Event) -> None:
        if event["f"] == "behind":
            if event["seconds"] >= _BEHIND:
                self._findings.violated("I24 no longer pushed", f"for {event['seconds']} s")
            return
        self._findings.count("scheduled times")
        if event["due"] in self._seen:
            self._findings.violated("I24 pushed twice", str(event["due"]))
        self._seen.add(event["due"])
