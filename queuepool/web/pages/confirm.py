"""What an action would be done to: counted, and told, before somebody says yes to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from queuepool.board.status import iso
from queuepool.jobs.client import Queue
from queuepool.operating.meant import Agreed, MeantFailed, MeantWaiting, Pages, chosen_failed, key_of
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.stores.records import RecordKey
from queuepool.web.agreements import Agreement, query_of
from queuepool.web.asked import FILTERS, Asked, ids_of
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.guard import Refusal
from queuepool.web.pages.failed import named_or_first, scope_for
from queuepool.web.pages.pool_rows import watched
from queuepool.web.pages.queues import named, waiting_shelf
from queuepool.web.render import part
from queuepool.web.scans import MOST_COUNTS, Scan

Facts = dict[str, Any]
#: jobs that are counted, and seconds that this may take: who asks for that waits
_MOST, _WITHIN = 10_000_000, 5.0
_OF_FAILED, _OF_WAITING = ("retry", "forget"), ("drop", "move", "run")
#: the fields of the list of failed jobs; and those that a form on it keeps, whose ids are the chosen ones
LIST = ("connection", "queue", *FILTERS, "column")
KEPT_BY_FORMS = tuple(name for name in LIST if name != "id")


def confirm(desk: Desk, asked: Asked) -> Facts:
    """How many failed jobs an action would be done to: all that fit; none that fail after this."""
    act, link = _act_of(asked, _OF_FAILED), named_or_first(desk, asked)
    queue, wanted, back = asked.text("queue"), asked.filter(), f"/failed{query_of(asked.query, LIST)}"
    is_all = wanted.is_empty and not queue

    def count(opened: Queue) -> Facts:
        look = Look(opened.stores, wanted)
        meant = MeantFailed(look, scope_for(desk, asked, opened))
        facts = _counted(look, meant.counted())
        agreement = Agreement(act, (link.name,), wanted, meant.agreed(), back, queue=queue, is_all=is_all)
        return facts | _offered(desk, asked, agreement)

    return _page(desk, link, count, act=act, back=back, filter=_words_of(wanted, queue), ids=[])


def chosen(desk: Desk, asked: Asked) -> Facts:
    """The same for chosen ones, of which some may be gone: those are left out."""
    act, link, ids = _act_of(asked, _OF_FAILED), named_or_first(desk, asked), ids_of(asked)
    if not ids:
        raise Refusal(400, "choose some first")
    back = f"/failed{query_of(asked.form, KEPT_BY_FORMS)}"

    def count(opened: Queue) -> Facts:
        scope, look = scope_for(desk, asked, opened), Look(opened.stores, Filter())
        until, keys, queues = scope.store.now(), list[RecordKey](), Counter[str]()
        for page in chosen_failed(look, scope, ids):
            keys += map(key_of, page)
            queues.update(job.queue for job in page)
        found, agreed = tuple(key.id for key in keys), Agreed(len(keys), until, (None, None))
        agreement = Agreement(act, (link.name,), Filter(), agreed, back, ids=found, keys=frozenset(keys))
        return _counts(queues) | _offered(desk, asked, agreement) | {"ids": found}

    return _page(desk, link, count, act=act, back=back, filter=[], ids=ids)


def confirm_waiting(desk: Desk, asked: Asked) -> Facts:
    """How many ready or delayed jobs of a queue an action would be done to: all that fit, and none that come later."""
    act, (link, queue), shelf = _act_of(asked, _OF_WAITING), named(desk, asked), waiting_shelf(asked)
    if act == "run" and shelf != "delayed":
        raise Refusal(400, "state: only delayed jobs have something to wait for")
    wanted = asked.filter()
    back = f"/queues/{part(link.name)}/{part(queue)}{query_of(asked.query, ('state', *FILTERS))}"

    def count(opened: Queue) -> Facts:
        look = Look(opened.stores, wanted)
        meant = MeantWaiting(look, queue, (shelf,))
        facts = _counted(look, meant.counted())
        agreement = Agreement(act, (link.name, queue, shelf), wanted, meant.agreed(), back)
        return facts | _offered(desk, asked, agreement)

    return _page(desk, link, count, act=act, back=back, filter=_words_of(wanted), queue=queue, state=shelf)


def _act_of(asked: Asked, known: tuple[str, ...]) -> str:
    found = asked.text("act")
    if found not in known:
        raise Refusal(400, f"act is one of {', '.join(known)}")
    return found


def _page(desk: Desk, link: StoreLink, count: Callable[[Queue], Facts], **about: Any) -> Facts:
    gathered = Gathered()
    [*found] = gathered.each([link], lambda _, opened: count(opened))
    return {
        "connection": link.name, "known_queues": _known_queues(desk, link), **_NOTHING, **about,
        **(found[0] if found else {}), **gathered.facts(),
    }  # fmt: skip


def _known_queues(desk: Desk, link: StoreLink) -> list[str]:
    """Where jobs may go: the queues of the configuration, and those that hold something."""
    measured = (facts.value.queues for name, facts in watched(desk) if name == link.name and facts.value)
    return [*dict.fromkeys([*desk.choice.queues(link.settings), *(one.name for some in measured for one in some)])]


def _counted(look: Look, pages: Pages) -> Facts:
    """How many there are of each queue; if there was no time to count them all, those that were counted are meant."""
    queues, scan = Counter[str](), Scan(look, _MOST, _WITHIN)
    for page in scan.pages(pages):
        queues.update(job.queue for job in page)
    return _counts(queues, is_whole=not scan.is_cut)


def _counts(queues: Counter[str], *, is_whole: bool = True) -> Facts:
    rows = [{"queue": queue, "jobs": jobs} for queue, jobs in queues.most_common(MOST_COUNTS)]
    return {"count": queues.total(), "queues": rows, "is_whole": is_whole}


def _offered(desk: Desk, asked: Asked, agreement: Agreement) -> Facts:
    if not agreement.agreed.count:
        return {"until": agreement.agreed.until}
    key = desk.agreements.offer(agreement, asked)
    return {"until": agreement.agreed.until, "agreed": key, "must_type": agreement.must_type}


#: where nothing was counted, or nothing is there
_NOTHING: Facts = {
    "count": 0, "queues": [], "until": None, "is_whole": True, "agreed": None, "must_type": False,
}  # fmt: skip


def _words_of(wanted: Filter, queue: str = "") -> list[list[str]]:
    """What the jobs are like, for people: pairs."""
    found = [
        ("Queue", queue), ("Id", wanted.id), ("Job", wanted.name),
        *(("Argument", f"{one.path}={one.word.text}") for one in wanted.where),
        ("Tag", wanted.tag), ("Error", wanted.error), ("Since", _moment(wanted.since)),
        ("Until", _moment(wanted.until)), ("Text", wanted.search),
    ]  # fmt: skip
    return [[name, words] for name, words in found if words]


def _moment(at: float | None) -> str:
    return "" if at is None else iso(at) or f"{at:.0f}"
