"""Cancel a flow, or resume it after a failure."""

from __future__ import annotations

import math

from queuepool.operating.flows import put_back
from queuepool.operating.meant import Agreed
from queuepool.operating.scopes import scope_on
from queuepool.search.filters import Filter
from queuepool.stores.flows import FlowRecord
from queuepool.unix.escape import counted
from queuepool.web.acts.acted import Acted, noted
from queuepool.web.agreements import Agreement
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk
from queuepool.web.guard import Refusal
from queuepool.web.render import part


def cancel(desk: Desk, asked: Asked) -> Acted:
    """Start no more of it: its jobs in queues are left out, those that run go on to their ends."""
    link, record = _named(desk, asked)
    if not link.do(lambda opened: opened.stores.flows.cancel(record.id)):
        return Acted(f"flow {record.id} is over: {record.state}", _back(link, record), is_good=False, is_untouched=True)
    return _done(desk, asked, link, record, "flow cancel", f"flow {record.id}: cancelled")


def retry(desk: Desk, asked: Asked) -> Acted:
    """Put its failed jobs back on their queues: it goes on from there, and nothing that is done runs again."""
    link, record = _named(desk, asked)
    failed = Agreed(record.counts.failed, math.inf, (None, None))
    Agreement("flow retry", (link.name,), Filter(), failed, _back(link, record)).check_typed(asked)
    done = link.do(lambda opened: put_back(scope_on(desk.choice, opened), record.id))
    if not done:
        words = f"none of its failed jobs could be put back; it is {record.state}"
        return Acted(f"flow {record.id}: {words}", _back(link, record), is_good=False, is_untouched=True)
    return _done(desk, asked, link, record, "flow retry", f"flow {record.id}: {counted(done, 'job')} put back", done)


def _named(desk: Desk, asked: Asked) -> tuple[StoreLink, FlowRecord]:
    link, flow_id = desk.link(asked.parts["connection"]), asked.parts["id"]
    if record := link.do(lambda opened: opened.stores.flows.find(flow_id)):
        return link, record
    raise Refusal(404, "there is no such flow: it never existed, or it is not kept any more")


def _done(
    desk: Desk, asked: Asked, link: StoreLink, record: FlowRecord, verb: str, words: str, count: int | None = None
) -> Acted:
    subject = f"flow {record.id} on connection {link.name}"
    why = desk.note(link, asked.visitor, verb, subject, count)
    link.expire()
    return Acted(noted(words, why), _back(link, record))


def _back(link: StoreLink, record: FlowRecord) -> str:
    return f"/flows/{part(link.name)}/{part(record.id)}"
