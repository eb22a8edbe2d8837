"""Payloads that could not be jobs."""

from __future__ import annotations

from itertools import islice
from typing import Any

from queuepool.jobs.client import Queue
from queuepool.operating.quarantine import glimpse, hint_of, quarantine_row
from queuepool.operating.queues import known_queues
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.pages.failed import named_or_first

Facts = dict[str, Any]
#: bytes of a payload that are shown; and queues that are looked at
_SHOWN, _MOST_QUEUES = 400, 500


def quarantine(desk: Desk, asked: Asked) -> Facts:
    """The entries of one connection, of one queue or of all, the oldest of each queue first."""
    link, gathered = named_or_first(desk, asked), Gathered()
    [*found] = gathered.each([link], lambda link, opened: _entries(desk, asked, link, opened))
    rows, left_out = found[0] if found else ([], False)
    about: Facts = {"connection": link.name, "connections": list(desk.links), "queue": asked.text("queue")}
    return {"entries": rows, "is_more": left_out, **about, **gathered.facts()}


def _entries(desk: Desk, asked: Asked, link: StoreLink, opened: Queue) -> tuple[list[Facts], bool]:
    named = asked.text("queue")
    queues = [named] if named else known_queues(desk.choice, link.settings, opened.stores)[:_MOST_QUEUES]
    entries = (entry for queue in queues for entry in opened.stores.records.quarantined(queue))
    rows = [
        {
            **quarantine_row(entry),
            "payload": glimpse(entry.payload, _SHOWN) if asked.sees_raw else None,
            "hint": hint_of(entry),
        }
        for entry in islice(entries, asked.rows() + 1)
    ]
    return rows[: asked.rows()], len(rows) > asked.rows()
