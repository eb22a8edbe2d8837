"""Who has done what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queuepool.board.status import iso
from queuepool.stores.journal import KEPT_LINES, Action
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk, Gathered
from queuepool.web.pages.failed import named_or_first

Facts = dict[str, Any]


def journal(desk: Desk, asked: Asked) -> Facts:
    """The last lines of one connection's journal, the latest first; those that hold a text, if one is given."""
    link, text, gathered = named_or_first(desk, asked), asked.text("text").lower(), Gathered()
    most = asked.rows()
    count = KEPT_LINES if text else most + 1
    lines: Sequence[Action] = gathered.one(link, lambda opened: opened.stores.journal.last(count), [])
    rows = [
        {"at": iso(line.at), "by": line.by, "verb": line.verb, "subject": line.subject, "count": line.count}
        for line in reversed(lines)
    ]
    meant = [row for row in rows if text in f"{row['by']} {row['verb']} {row['subject']}".lower()]
    about: Facts = {"connection": link.name, "connections": list(desk.links), "is_more": len(meant) > most}
    return {"lines": meant[:most], **about, **gathered.facts()}
