"""Payloads that could not be jobs."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any

from queuepool.jobs.client import Queue
from queuepool.operating.quarantine import hint_of, quarantine_row
from queuepool.unix.escape import counted
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.pages.failed import named_or_first

Facts = dict[str, Any]
#: bytes of a payload that are shown; queues that are looked at, and seconds for that
_SHOWN, _MOST_QUEUES, _WITHIN = 400, 500, 1.0


def quarantine(desk: Desk, asked: Asked) -> Facts:
    """The entries of one connection, of one queue or of all, the oldest of each queue first."""
    link, gathered = named_or_first(desk, asked), Gathered()
    nothing: Facts = {"entries": [], "is_more": False, "remarks": []}
    facts = gathered.one(link, lambda opened: _entries(desk, asked, link, opened), nothing)
    about: Facts = {"connection": link.name, "connections": list(desk.links), "queue": asked.text("queue")}
    return {**facts, **about, **gathered.facts()}


def _entries(desk: Desk, asked: Asked, link: StoreLink, opened: Queue) -> Facts:
    named, most = asked.text("queue"), asked.rows()
    queues = [named] if named else link.queues(opened)[:_MOST_QUEUES]
    rows, remarks, until = list[Facts](), list[str](), time.monotonic() + _WITHIN
    for number, queue in enumerate(queues):
        if number and time.monotonic() >= until:
            unseen = counted(len(queues) - number, "further queue")
            remarks.append(f"there was no time to look at {unseen}: each is linked from the page of queues")
            break
        entries = islice(opened.stores.records.quarantined(queue), most + 1 - len(rows))
        rows += [{**quarantine_row(one, _SHOWN if asked.sees_raw else None), "hint": hint_of(one)} for one in entries]
        if len(rows) > most:
            break
    return {"entries": rows[:most], "is_more": len(rows) > most, "remarks": remarks}
