"""Drop the waiting jobs of a queue that fit, move them to another queue of the connection, or run them now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from queuepool.config.values import queue as checked_queue
from queuepool.jobs.client import Queue
from queuepool.search.bulk import Act, OfWaitingJobs
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.settlement.held_locks import HeldLocks
from queuepool.web.acts.acted import Acted
from queuepool.web.acts.failed import confirmed, outcome_of, query_of
from queuepool.web.acts.queues import path_of
from queuepool.web.asked import FILTERS, Asked
from queuepool.web.desk import Desk
from queuepool.web.errands import ErrandPlan, WebErrand
from queuepool.web.guard import Refusal
from queuepool.web.pages.queues import named, waiting_shelf


def drop(desk: Desk, asked: Asked) -> Acted:
    """With their unique locks; nothing is left of them."""
    return _acted(desk, asked, "drop", "dropped", lambda acts: acts.drop)


def move(desk: Desk, asked: Asked) -> Acted:
    """Each is in one of both queues at any moment, and keeps its lock, its attempts and its due time."""
    target = asked.one("to", checked_queue, "")
    if target in ("", asked.parts["queue"]):
        raise Refusal(400, "to: name the other queue")
    return _acted(desk, asked, "move", f"moved to {target}", lambda acts: partial(acts.move_to, target))


def run(desk: Desk, asked: Asked) -> Acted:
    """Delayed ones become due now, and keep their locks and attempts."""
    if waiting_shelf(asked) != "delayed":
        raise Refusal(400, "state: only delayed jobs have something to wait for")
    return _acted(desk, asked, "run", "made due now", lambda acts: acts.run_now)


def _acted(desk: Desk, asked: Asked, verb: str, done: str, act_of: Callable[[OfWaitingJobs], Act]) -> Acted:
    (link, queue), shelf, most = named(desk, asked), waiting_shelf(asked), confirmed(asked, 0)
    back = path_of(link.name, queue) + query_of(asked.form, ("state", *FILTERS))
    plan = ErrandPlan(verb, done, link.name, most, back, partial(desk.note, link, asked.visitor))

    def begin(opened: Queue) -> WebErrand:
        look = Look(opened.stores, asked.filter())
        found = look.waiting(queue, (shelf,))
        act = act_of(OfWaitingJobs(look, HeldLocks(link.settings), queue, found))
        return desk.errands.begin(plan, asked.visitor, _first(found.pages(), most), act)

    errand = link.do(begin)
    link.expire()
    return outcome_of(errand)


def _first(pages: Iterator[list[FoundJob]], most: int) -> Iterator[Sequence[FoundJob]]:
    """At most as many as were agreed to: those that have come meanwhile are behind them."""
    for page in pages:
        yield page[:most]
        most -= len(page)
        if most <= 0:
            return
