"""Cancel one job; ask a running one where it is in its code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from queuepool.board.runtime_dir import boards_in
from queuepool.config.values import seconds
from queuepool.errors import NoStack
from queuepool.jobs.cancelling import CancelOutcome, CancelWish
from queuepool.operating.cancelling import cancel_on, words_of
from queuepool.steward.stacks import asked_on, stack_lines, stack_row
from queuepool.stores.journal import cancelled_job
from queuepool.web.acts.acted import Acted, noted
from queuepool.web.acts.pools import tell_pools
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, by_of
from queuepool.web.pages.job import id_of
from queuepool.web.pages.pool_rows import watched

#: seconds for a job that can end by itself, by default and at most
_GRACE, _MOST_GRACE = 5.0, 8.0
#: seconds that one worker is asked for its stack, and most lines of all stacks
_ASKED_FOR, _MOST_LINES = 2.0, 500


def cancel(desk: Desk, asked: Asked) -> Acted:
    """Take it out of its queue, or end it where it runs, on any host; it is recorded as failed, or put back."""
    job_id, link = id_of(asked), desk.link(asked.text("connection"))
    requeue, grace = asked.text("requeue") == "yes", min(asked.one("grace", seconds, _GRACE), _MOST_GRACE)
    wish = CancelWish(job_id, by_of(asked.visitor), requeue, grace)
    folders = [runtime.path for runtime in desk.boards.runtimes_of(link.settings)]
    found = link.do(lambda opened: cancel_on(desk.choice, opened, folders, wish))
    if found.outcome is CancelOutcome.ELSEWHERE:
        return _told(link, asked, job_id, (found.host, found.pool), "cancel", {"grace": grace, "requeue": requeue})
    words = words_of(found)
    if found:
        words = noted(words, desk.note(link, asked.visitor, "cancel", cancelled_job(job_id, requeue=requeue), 1))
        words += f"; {found.no_hook}" if found.no_hook else ""
    link.expire()
    return Acted(words, f"/jobs/{quote(job_id, safe='')}", bool(found), {"outcome": found.outcome.value})


def stack(desk: Desk, asked: Asked) -> Acted:
    """Where a running job is in its code; it goes on."""
    job_id, rows, problems = id_of(asked), list[dict[str, object]](), list[str]()
    for link in desk.links.values():
        found, misses = _stacks(desk, link, job_id)
        problems += misses
        rows += found
        if found:
            problems += _noted(desk, link, asked, job_id)
    if not rows and not problems and (place := _elsewhere(desk, job_id)):
        acted = _told(place[0], asked, job_id, place[1], "stack", {"subject": job_id})
        unnoted = _noted(desk, place[0], asked, job_id) if acted.is_good else []
        return replace(acted, words="\n".join([acted.words, *unnoted]))
    lines = [line for row in rows for line in stack_lines(row)][:_MOST_LINES]
    words = "\n".join([*lines, *problems]) or f"job {job_id} runs in no pool that is known here"
    return Acted(words, f"/jobs/{quote(job_id, safe='')}", bool(rows), {"stacks": rows})


def _stacks(desk: Desk, link: StoreLink, job_id: str) -> tuple[list[dict[str, object]], list[str]]:
    """Those of the workers of a connection's pools on this host that run it, and why there are none."""
    names = {runtime.path: runtime.name for runtime in desk.boards.runtimes_of(link.settings)}
    rows, problems = list[dict[str, object]](), list[str]()
    with boards_in(names) as boards:
        for board in boards:
            for one in asked_on(board, names.get(board.path.parent, ""), job_id):
                try:
                    rows.append(stack_row(one, _ASKED_FOR))
                except NoStack as error:
                    problems.append(str(error))
    return rows, problems


def _noted(desk: Desk, link: StoreLink, asked: Asked, job_id: str) -> list[str]:
    """Who has looked into the job's code; returns why the journal does not tell."""
    why = desk.note(link, asked.visitor, "stack", f"job {job_id}")
    return [f"the journal has no line of this: {why}"] if why else []


def _elsewhere(desk: Desk, job_id: str) -> tuple[StoreLink, tuple[str, str]] | None:
    """The host and the pool that run a job, by their last notices, and the store that leads there."""
    for name, facts in watched(desk):
        for pool in facts.value.pools if facts.value else ():
            jobs = [job for process in (pool.overview.processes if pool.overview else ()) for job in process.jobs]
            if any(job.id == job_id for job in jobs):
                return desk.links[name], (pool.host, pool.name)
    return None


def _told(
    link: StoreLink, asked: Asked, job_id: str, place: tuple[str, str], verb: str, details: dict[str, Any]
) -> Acted:
    """Have the pool there do it. Where a line in the journal is due, that pool leaves it."""
    replies = tell_pools(link, asked, lambda pool: (pool.host, pool.name) == place, verb, {"id": job_id, **details})
    # Several pools may have one name: only those count that have the job, if one has.
    meant = [reply for reply in replies if not reply.is_elsewhere] or replies
    words = "\n".join(map(str, meant))
    return Acted(words, f"/jobs/{quote(job_id, safe='')}", all(reply.is_done for reply in meant))
