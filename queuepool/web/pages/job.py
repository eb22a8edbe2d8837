"""One job, wherever it is."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from queuepool.board.status import iso
from queuepool.errors import NotTracked, StoreDown
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState
from queuepool.operating.attempts import GAP, facts_of, numbered
from queuepool.operating.job_search import NOWHERE, JobSearch
from queuepool.operating.kept_steps import KeptStep
from queuepool.payload.limits import name_of
from queuepool.payload.members import member_in
from queuepool.search.ended import EndedAttempt
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob, plain
from queuepool.search.look import SHELVES, Look
from queuepool.stores.records import FailedJob
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, Gathered
from queuepool.web.guard import Refusal
from queuepool.web.scans import Scan
from queuepool.web.shown import arguments, without_data

Facts = dict[str, Any]
#: seconds for which queues are searched
_SEARCHED = 1.0
#: most characters of an id, and of a payload and an error that are shown
_LONGEST_ID, _MOST_SHOWN = 200, 64 * 1024
#: attempts that have ended that are shown: the latest
_MOST_ATTEMPTS = 200
#: steps that are kept that are shown: the first ones
_MOST_STEPS = 500


def job(desk: Desk, asked: Asked) -> Facts:
    """What is known of it: where it is, how it ended, its payload."""
    job_id, gathered = id_of(asked), Gathered()
    links = desk.chosen(asked.text("connection"))
    look = _look_for_all if asked.is_renewal else _look
    looks = gathered.each(links, lambda link, opened: look(desk, asked, link, opened, job_id))
    misses = list[str]()
    for found, looked_at in looks:
        if found:
            return {"id": job_id, "found": None, **found, "misses": misses, **gathered.facts(), "status": 200}
        misses.append(looked_at)
    facts = gathered.facts()
    nothing = {"id": job_id, "connection": None, "state": None, "misses": misses}
    return {**nothing, **facts, "status": 503 if facts["status"] == 503 else 404}


def id_of(asked: Asked) -> str:
    """The job's id, in the path or in the query. Raises ``Refusal`` for what cannot be one."""
    found = asked.parts.get("id") or asked.text("id")
    if not found or len(found) > _LONGEST_ID or not found.isprintable():
        raise Refusal(404, "there is no such job")
    return found


def _look_for_all(desk: Desk, asked: Asked, link: StoreLink, _: Queue, job_id: str) -> tuple[Facts | None, str]:
    """As ``_look``, once within a moment for all who are shown the same."""
    key = "job", job_id, asked.data, asked.sees_raw
    found = link.counted(key, lambda opened: _look(desk, asked, link, opened, job_id))
    if found.value is None or found.problem:
        raise StoreDown(found.problem or "no answer yet")
    return found.value


def _look(desk: Desk, asked: Asked, link: StoreLink, opened: Queue, job_id: str) -> tuple[Facts | None, str]:
    runtimes = desk.boards.runtimes_of(link.settings)
    queues = partial(link.queues, opened)
    search = JobSearch(desk.choice, opened, runtimes, within=_SEARCHED, in_payloads=asked.sees_raw, queues=queues)
    state = _state(opened, job_id)
    facts = None if state and state.state == "done" else search.find(job_id)  # for its payload, too
    if state:
        result = arguments(plain(state.result), asked, whole=True)
        facts = {**asdict(state), "result": result, **search.place_of(state), "found": "its state"}
    is_over = facts is None
    facts = facts or search.ended(job_id)
    if facts is None:
        return None, search.looked_at
    facts = search.with_attempts(facts)
    facts["ended"] = [without_data(one, asked) for one in _ended(facts["ended"], facts)]
    facts["steps"] = [_shown_step(one, asked) for one in facts["steps"][:_MOST_STEPS]]
    found = search.job or _reserved(opened, facts, job_id)
    plain_facts = {key: _plain(value) for key, value in {**NOWHERE, **facts}.items()}
    is_failed = found is not None and found.state == "failed"
    about = {"connection": link.name, "is_failed": is_failed, "is_over": is_over, "ended_is_cut": search.is_cut}
    if asked.data != "yes" and plain_facts["limit"]:  # a key is made of values
        plain_facts["limit"] = name_of(plain_facts["limit"])
    return without_data({**plain_facts, **about, **_payload(found, asked)}, asked), ""


def _ended(attempts: list[EndedAttempt], facts: Facts) -> list[Facts]:
    """The attempts that have ended, and those between them of which nothing is known."""
    begun = (facts["attempts"] or 0) - (facts["state"] in ("running", "reserved"))
    shown = numbered(attempts, begun)[-_MOST_ATTEMPTS:]
    return [facts_of(one) if one else {"attempt": number, "gap": GAP} for number, one in shown]


def _shown_step(one: KeptStep, asked: Asked) -> Facts:
    """A name's key may be data, too."""
    name = one.name if asked.data == "yes" else one.name.partition(":")[0]
    shown = arguments(
        plain({one.name.partition(":")[0]: one.value}), asked
    )  # by a step's name, too, it may be a secret
    value = next(iter(shown.values())) if isinstance(shown, dict) else shown
    return {**one.facts(), "name": name, "value": value}


def _state(opened: Queue, job_id: str) -> JobState | None:
    try:
        return opened.job(job_id)
    except NotTracked:
        return None


def _reserved(opened: Queue, facts: Facts, job_id: str) -> FoundJob | None:
    """The payload of a job that runs: its queue has it until it is settled."""
    if facts["state"] != "running" or not facts["queue"]:
        return None
    look = Look(opened.stores, Filter(id=job_id))
    pages = Scan(look).pages(look.waiting(facts["queue"], SHELVES[2:]).pages())
    return next((one for page in pages for one in page), None)


def _payload(found: FoundJob | None, asked: Asked) -> Facts:
    if found is None:
        return {"arguments": None, "raw": None, "trace": None, "tags": [], "pushed": None, "size": None}
    payload = found.payload
    member = member_in(payload.fields) if payload else None
    trace = found.where.exception if isinstance(found.where, FailedJob) else None
    return {
        "arguments": arguments(plain(found.arguments), asked, whole=True),
        "is_closed": found.is_closed,
        "raw": _cut(found.raw.decode("utf-8", "backslashreplace")) if asked.sees_raw else None,
        "trace": _cut(trace) if trace and asked.sees_raw else None,
        "flow": member and member.flow,
        "tags": list(found.tags),
        "pushed": iso(found.pushed) if found.pushed else None,
        "options": json.loads(json.dumps(asdict(payload.options), default=str)) if payload else None,
        "size": len(found.raw),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text) - _MOST_SHOWN} more)"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value.timestamp())
    return value
