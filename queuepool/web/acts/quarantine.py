"""Put a payload of the quarantine back on its queue, or drop it."""

from __future__ import annotations

from collections.abc import Callable

from queuepool.jobs.client import Queue
from queuepool.operating.quarantine import drop_entry, entry_of, put_back
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.records import Quarantined, Returned
from queuepool.web.acts.acted import Acted, noted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.queues import named
from queuepool.web.render import query

_Act = Callable[[Queue, HeldLocks, Quarantined], Returned]


def retry(desk: Desk, asked: Asked) -> Acted:
    """Unchanged, at the end of its queue."""
    return _one(desk, asked, "retry", "was put back on its queue", put_back)


def drop(desk: Desk, asked: Asked) -> Acted:
    """With its unique locks."""
    return _one(desk, asked, "drop", "was dropped", drop_entry)


def _one(desk: Desk, asked: Asked, verb: str, done: str, act: _Act) -> Acted:
    link, queue = named(desk, asked)
    entry_id = asked.parts["id"]

    def do(opened: Queue) -> Returned:
        entry = entry_of(opened, queue, entry_id)
        return act(opened, HeldLocks(link.settings), entry) if entry else Returned.GONE

    result, back = link.do(do), f"/quarantine{query(connection=link.name)}"
    link.expire()
    if result is Returned.HELD:
        words = f"payload {entry_id} stays: another job holds its unique lock"
        return Acted(words, back, is_good=False, is_untouched=True)
    if result is Returned.GONE:
        return Acted(f"payload {entry_id} is not in the quarantine of queue {queue} any more", back, is_good=False)
    why = desk.note(link, asked.visitor, f"quarantine {verb}", f"payload {entry_id} of queue {queue}", 1)
    return Acted(noted(f"payload {entry_id} {done}", why), back)
