"""Pause a queue on all hosts, and let it continue."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from queuepool.board.pauses import pause_words
from queuepool.board.status import iso
from queuepool.jobs.client import Queue
from queuepool.operating.pausing import pause_queue
from queuepool.operating.queues import may_be_misspelled
from queuepool.web.acts.acted import Acted, noted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk, by_of
from queuepool.web.guard import WrongEntry
from queuepool.web.pages.queues import named


def pause(desk: Desk, asked: Asked) -> Acted:
    """Its workers begin none of its jobs, on any host; ``unserved``: whether also if its name may be misspelled."""

    def act(opened: Queue, queue: str) -> tuple[str, bool]:
        if asked.text("unserved") != "yes" and may_be_misspelled(desk.choice, opened, queue):
            words = f"no pool serves queue {queue}, and it holds nothing: say that it is to be paused all the same"
            raise WrongEntry("unserved", words, 409)
        if before := pause_queue(opened.stores, queue, by_of(asked.visitor)):
            return f"queue {queue} was paused already{pause_words(iso(before[0]), before[1])}", False
        return f"queue {queue} is paused on all hosts", True

    return _done(desk, asked, "pause", act)


def resume(desk: Desk, asked: Asked) -> Acted:
    """The end of a pause."""

    def act(opened: Queue, queue: str) -> tuple[str, bool]:
        was_paused = opened.stores.control.resume(queue)
        return f"queue {queue} {'continues' if was_paused else 'was not paused'}", was_paused

    return _done(desk, asked, "continue", act)


def _done(desk: Desk, asked: Asked, verb: str, act: Callable[[Queue, str], tuple[str, bool]]) -> Acted:
    link, queue = named(desk, asked)
    words, is_done = link.do(lambda opened: act(opened, queue))
    if is_done:
        words = noted(words, desk.note(link, asked.visitor, verb, f"queue {queue}"))
    link.expire()
    return Acted(words, path_of(link.name, queue), facts={"changed": is_done})


def path_of(connection: str, queue: str) -> str:
    """The path of a queue's page."""
    return f"/queues/{quote(connection, safe='')}/{quote(queue, safe='')}"
