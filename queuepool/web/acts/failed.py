"""Retry or forget failed jobs: those of some ids, or all that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from urllib.parse import urlencode

from queuepool.config.values import queue as checked_queue
from queuepool.jobs.client import Queue
from queuepool.operating.scopes import Scope
from queuepool.search.bulk import Act, OfFailedJobs
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.web.acts.acted import Acted
from queuepool.web.asked import FILTERS, Asked, number, unix_seconds
from queuepool.web.desk import Desk
from queuepool.web.errands import ErrandPlan, WebErrand
from queuepool.web.guard import Refusal
from queuepool.web.pages.failed import named_or_first, scope_for

#: above so many, the number must be typed
TYPED_ABOVE = 100
#: jobs by their ids that are read before they are dealt with
_PAGE = 50
#: what leads back to the list
_OF_THE_LIST = ("connection", "queue", *(name for name in FILTERS if name != "id"), "column")


def retry(desk: Desk, asked: Asked) -> Acted:
    """Put them back on their queues, or on another one, with all their tries."""
    target = asked.one("to", checked_queue, "")
    return _acted(
        desk, asked, "retry", "put back", lambda acts: partial(acts.retry_on, target) if target else acts.retry
    )


def forget(desk: Desk, asked: Asked) -> Acted:
    """Drop them, with the unique locks that they still hold."""
    return _acted(desk, asked, "forget", "dropped", lambda acts: acts.forget)


def _acted(desk: Desk, asked: Asked, verb: str, done: str, act_of: Callable[[OfFailedJobs], Act]) -> Acted:
    link, ids = named_or_first(desk, asked), list(dict.fromkeys(asked.all("id")))
    note = partial(desk.note, link, asked.visitor)
    plan = ErrandPlan(verb, done, link.name, confirmed(asked, len(ids)), _back(asked), note, bool(ids))

    def begin(opened: Queue) -> WebErrand:
        scope, look = scope_for(desk, asked, opened), Look(opened.stores, asked.filter(ids=False))
        act = act_of(OfFailedJobs(opened.stores, scope.locks, look.pace))
        pages = _by_ids(scope, look, ids) if ids else scope.pages(look, _before(asked))
        return desk.errands.begin(plan, asked.visitor, pages, act)

    errand = link.do(begin)
    link.expire()
    return outcome_of(errand)


def confirmed(asked: Asked, ids: int) -> int:
    """How many the visitor has agreed to. Raises ``Refusal`` if all that fit are meant and nobody has counted them."""
    count = ids or asked.one("count", number, -1)
    if count < 0:
        raise Refusal(400, "count: say how many there are, as the page before this does")
    if count > TYPED_ABOVE and asked.one("typed", number, -1) != count:
        raise Refusal(409, f"to do this to more than {TYPED_ABOVE} jobs, type their number: {count}")
    return count


def _before(asked: Asked) -> float:
    """Until when they had failed, in Unix seconds: those that fail after the question are left alone."""
    found = asked.one("before", unix_seconds, 0.0)
    if not found:
        raise Refusal(400, "before: say until when they had failed, in Unix seconds, as the page before this does")
    return found


def _by_ids(scope: Scope, look: Look, ids: Sequence[str]) -> Iterator[list[FoundJob]]:
    for first in range(0, len(ids), _PAGE):
        records = look.pace(lambda first=first: [scope.get(one) for one in ids[first : first + _PAGE]])  # type: ignore[misc]
        yield [FoundJob.failed(record, look.commands) for record in records if record]


def _back(asked: Asked) -> str:
    return f"/failed{query_of(asked.form, _OF_THE_LIST)}"


def query_of(fields: Iterable[tuple[str, str]], kept: Sequence[str]) -> str:
    """The query of the page to go back to, from the fields of a form: nothing else of them is used."""
    pairs = [(name, value) for name, value in fields if name in kept and value]
    return f"?{urlencode(pairs)}" if pairs else ""


def outcome_of(errand: WebErrand) -> Acted:
    """What came of it if it is over, else where to watch it."""
    is_over = errand.over.is_set()
    back = errand.plan.back if is_over else f"/errands/{errand.id}"
    return Acted(errand.words, back, not errand.problem, errand.to_json())
