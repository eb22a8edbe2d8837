"""Retry or forget failed jobs: those of some ids, or all that were counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from queuepool.jobs.client import Queue
from queuepool.operating.carrying_out import Errand
from queuepool.operating.meant import Agreed, MeantFailed, acts_on, chosen_failed
from queuepool.operating.scopes import scope_on
from queuepool.search.bulk import Act, OfFailedJobs
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.web.acts.acted import Acted
from queuepool.web.acts.begun import begun, target_of
from queuepool.web.agreements import Agreement, query_of
from queuepool.web.asked import Asked, ids_of
from queuepool.web.desk import Desk
from queuepool.web.pages.confirm import KEPT_BY_FORMS
from queuepool.web.pages.failed import named_or_first


def retry(desk: Desk, asked: Asked) -> Acted:
    """Put them back on their queues, or on another one, with all their tries."""
    target = target_of(desk, asked, named_or_first(desk, asked))
    done = f"put back on queue {target}" if target else "put back"
    return _acted(desk, asked, "retry", done, lambda acts: partial(acts.retry, queue=target))


def forget(desk: Desk, asked: Asked) -> Acted:
    """Drop them, with the unique locks that they still hold."""
    return _acted(desk, asked, "forget", "dropped", lambda acts: acts.forget)


def _acted(desk: Desk, asked: Asked, verb: str, done: str, act_of: Callable[[OfFailedJobs], Act]) -> Acted:
    link, ids = named_or_first(desk, asked), ids_of(asked)
    agreement = _named(asked, verb, ids, link.name) if ids else desk.agreements.accepted(asked, verb, link.name)

    def errand(opened: Queue) -> Errand:
        scope = scope_on(desk.choice, opened, queue=agreement.queue or None)
        look = Look(opened.stores, agreement.wanted)
        if agreement.ids:
            return chosen_failed(look, scope, agreement.ids, agreement.keys), act_of(acts_on(scope, look))
        return MeantFailed(look, scope, agreement.agreed).errand(act_of)

    return begun(desk, asked, link, agreement, done, errand)


def _named(asked: Asked, verb: str, ids: tuple[str, ...], connection: str) -> Agreement:
    """Who names jobs has agreed to them."""
    back = f"/failed{query_of(asked.form, KEPT_BY_FORMS)}"
    named = Agreement(verb, (connection,), Filter(), Agreed(len(ids), math.inf, (None, None)), back, ids=ids)
    named.check_typed(asked)
    return named
