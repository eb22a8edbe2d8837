"""Pause a schedule on all hosts, let it continue, push its job now."""

from __future__ import annotations

from queuepool.operating.schedule_runs import push_now
from queuepool.web.acts.acted import Acted, noted
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, by_of
from queuepool.web.pages.schedules import named

_BACK = "/schedules"


def pause(desk: Desk, asked: Asked) -> Acted:
    """Nothing is pushed for it until it continues."""
    link, one = named(desk, asked)
    by = by_of(asked.visitor)
    link.do(lambda opened: opened.stores.control.pause_schedule(one.name, opened.stores.queue.now(), by))
    return _done(
        desk, asked, link, "schedule pause", f"schedule {one.name}", f"schedule {one.name} is paused on all hosts"
    )


def resume(desk: Desk, asked: Asked) -> Acted:
    """The end of a pause; a due time that was missed is made up for, unless it is too late."""
    link, one = named(desk, asked)
    if not link.do(lambda opened: opened.stores.control.resume_schedule(one.name)):
        return Acted(f"schedule {one.name} was not paused by itself", _BACK, is_good=False, is_untouched=True)
    return _done(desk, asked, link, "schedule resume", f"schedule {one.name}", f"schedule {one.name} continues")


def run(desk: Desk, asked: Asked) -> Acted:
    """Push its job now; its due times stay as they are."""
    link, one = named(desk, asked)
    job_id, lock = link.do(lambda opened: push_now(opened, one))
    if lock:
        words = f"the last job of {one.name} is still queued or running, and overlap is no"
        return Acted(words, _BACK, is_good=False, is_untouched=True)
    words = f"job {job_id} of schedule {one.name} was pushed"
    return _done(desk, asked, link, "schedule run", f"schedule {one.name}, job {job_id}", words, job=job_id)


def _done(desk: Desk, asked: Asked, link: StoreLink, verb: str, subject: str, words: str, **facts: str) -> Acted:
    return Acted(noted(words, desk.note(link, asked.visitor, verb, subject)), _BACK, facts=facts)
