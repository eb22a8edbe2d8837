"""Begins what was agreed to, in the background, and says where to watch it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from queuepool.config.values import queue as checked_queue
from queuepool.jobs.client import Queue
from queuepool.operating.carrying_out import Errand
from queuepool.operating.queues import is_served
from queuepool.operating.targets import connection_instead
from queuepool.web.acts.acted import Acted
from queuepool.web.agreements import Agreement
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk
from queuepool.web.errands import ErrandPlan, WebErrand
from queuepool.web.guard import WrongEntry


def begun(
    desk: Desk, asked: Asked, link: StoreLink, agreement: Agreement, done: str, errand_of: Callable[[Queue], Errand]
) -> Acted:
    """The outcome if it is over soon, else where to watch it. ``done``: as in "put back"."""
    note = partial(desk.note, link, asked.visitor)
    is_chosen = bool(agreement.ids or agreement.wanted.id)
    plan = ErrandPlan(agreement.act, done, link.name, agreement.agreed.count, agreement.back, note, is_chosen)

    def begin(opened: Queue) -> WebErrand:
        pages, act = errand_of(opened)
        return desk.errands.begin(plan, asked.visitor, pages, act)

    errand = link.do(begin)
    agreement.is_used = True
    link.expire()
    is_over = errand.over.is_set()
    back = agreement.back if is_over else f"/errands/{errand.id}"
    return Acted(errand.words, back, not errand.problem, errand.to_json())


def target_of(desk: Desk, asked: Asked, link: StoreLink) -> str:
    """The queue on which jobs are to be put; empty if none is named.

    Raises ``WrongEntry`` for one of another connection, and for one that nobody serves, unless that is said.
    """
    target = asked.one("to", checked_queue, "")
    if not target:
        return ""
    if there := connection_instead(desk.choice, link.settings, target):
        raise WrongEntry("to", f"queue {target} is on connection {there.name}, and these jobs are on {link.name}")
    if asked.text("unserved") != "yes" and not link.do(lambda opened: is_served(desk.choice, opened, target)):
        raise WrongEntry("to", f"no pool serves queue {target}: say that the jobs may wait there all the same", 409)
    return target
