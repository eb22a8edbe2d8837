"""Set the number of a limit by hand, and have it follow the code again."""

from __future__ import annotations

from queuepool.config.pool_queues import places
from queuepool.operating.limits import set_number_of, unknown
from queuepool.web.acts.acted import Acted, noted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.guard import Refusal, WrongEntry
from queuepool.web.render import part


def set_number(desk: Desk, asked: Asked) -> Acted:
    """In force at once, on all hosts, over what the code says; with 0 no job starts."""
    number = asked.one("number", places, None)  # 0 is a number, too
    if number is None:
        raise WrongEntry("number", "give the number of places")
    return _set(desk, asked, number)


def reset(desk: Desk, asked: Asked) -> Acted:
    """What the code says is in force again."""
    return _set(desk, asked, None)


def _set(desk: Desk, asked: Asked, number: int | None) -> Acted:
    link, name = desk.link(asked.parts["connection"]), asked.parts["name"]
    done = link.do(lambda opened: set_number_of(opened.stores, name, number))
    if done is None:
        raise Refusal(404, unknown(name))
    why = desk.note(link, asked.visitor, done.verb, done.subject)
    link.expire()
    return Acted(noted(done.words, why), f"/limits/{part(link.name)}/{part(name)}")
