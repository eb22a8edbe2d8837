"""Drop the waiting jobs of a queue that were counted, move them to another queue of the connection, or run them now."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from queuepool.jobs.client import Queue
from queuepool.operating.carrying_out import Errand
from queuepool.operating.meant import Agreed, MeantWaiting
from queuepool.search.bulk import Act, OfWaitingJobs
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.web.acts.acted import Acted
from queuepool.web.acts.begun import begun, target_of
from queuepool.web.agreements import Agreement
from queuepool.web.asked import Asked, ids_of
from queuepool.web.desk import Desk
from queuepool.web.guard import Refusal, WrongEntry
from queuepool.web.pages.queues import named, waiting_shelf


def drop(desk: Desk, asked: Asked) -> Acted:
    """With their unique locks; nothing is left of them."""
    return _acted(desk, asked, "drop", "dropped", lambda acts: acts.drop)


def move(desk: Desk, asked: Asked) -> Acted:
    """Each is in one of both queues at any moment, and keeps its lock, its attempts and its due time."""
    link, queue = named(desk, asked)
    target = target_of(desk, asked, link)
    if target in ("", queue):
        raise WrongEntry("to", "name the other queue")
    return _acted(desk, asked, "move", f"moved to {target}", lambda acts: partial(acts.move_to, target))


def run(desk: Desk, asked: Asked) -> Acted:
    """Delayed ones become due now, and keep their locks and attempts."""
    if waiting_shelf(asked) != "delayed":
        raise Refusal(400, "state: only delayed jobs have something to wait for")
    return _acted(desk, asked, "run", "made due now", lambda acts: acts.run_now)


def _acted(desk: Desk, asked: Asked, verb: str, done: str, act_of: Callable[[OfWaitingJobs], Act]) -> Acted:
    (link, queue), shelf, ids = named(desk, asked), waiting_shelf(asked), ids_of(asked)
    of = link.name, queue, shelf
    agreement = _named(verb, of, ids) if ids else desk.agreements.accepted(asked, verb, *of)

    def errand(opened: Queue) -> Errand:
        look = Look(opened.stores, agreement.wanted)
        try:
            meant = MeantWaiting(look, queue, (shelf,), agreement.agreed)
        except ValueError as error:
            raise Refusal(409, f"{error}: count them again") from error
        return meant.errand(act_of)

    return begun(desk, asked, link, agreement, done, errand)


def _named(verb: str, of: tuple[str, str, str], ids: tuple[str, ...]) -> Agreement:
    """Who names a job has agreed to it, and sees what became of it."""
    if len(ids) > 1:
        raise Refusal(400, "id: name one job, or count those that fit")
    return Agreement(verb, of, Filter(id=ids[0]), Agreed(1, math.inf, ""), f"/jobs/{quote(ids[0], safe='')}")
