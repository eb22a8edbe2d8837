"""Commands to one pool on any host, or to all of a store: pause, continue, replace the workers, scale; stop one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from queuepool.board.requests import Change, Pin, order_of
from queuepool.config.values import some_seconds
from queuepool.jobs.client import Queue
from queuepool.operating.notices import PublishedPool
from queuepool.operating.post import ANSWERED_WITHIN, TAKEN_WITHIN, Post, Reply
from queuepool.stores.commands import MAX_WORDS
from queuepool.web.acts.acted import Acted
from queuepool.web.asked import Asked
from queuepool.web.connections import StoreLink
from queuepool.web.desk import Desk, by_of
from queuepool.web.guard import Refusal, WrongEntry

#: seconds between two looks for the answer
_POLL = 0.1
#: in place of a pool's id: all pools on the connection
ALL = "all"


def pause(desk: Desk, asked: Asked) -> Acted:
    """Its workers begin no more jobs."""
    return _told(desk, asked, "pause")


def resume(desk: Desk, asked: Asked) -> Acted:
    """The end of a pause."""
    return _told(desk, asked, "continue")


def reload(desk: Desk, asked: Asked) -> Acted:
    """Replace its workers, each after its job."""
    return _told(desk, asked, "reload")


def scale(desk: Desk, asked: Asked) -> Acted:
    """To a number of workers, or by as many more or fewer; ``for``: how long, else until the next order."""
    order, lasts = asked.text("order"), ceil(asked.one("for", some_seconds, 0.0))
    try:
        wanted = order_of(order)
    except ValueError as error:
        raise WrongEntry("order", str(error)) from error
    if lasts and not isinstance(wanted, (Pin, Change)):
        raise WrongEntry("for", "goes with a number of workers")
    return _told(desk, asked, "scale", {"order": order, "seconds": lasts})


def stop(desk: Desk, asked: Asked) -> Acted:
    """After its running jobs; not all pools at once, as nothing here starts them again."""
    if asked.parts["id"] == ALL:
        raise Refusal(400, "stop one pool at a time")
    return _told(desk, asked, "drain")


def _told(desk: Desk, asked: Asked, verb: str, details: Mapping[str, Any] | None = None) -> Acted:
    link, instance = desk.link(asked.parts["connection"]), asked.parts["id"]
    shown = asked.text("host"), asked.text("pool")

    def is_meant(pool: PublishedPool) -> bool:
        """Whether it is that of the id, and still the one that the page has named."""
        return instance == ALL or (instance == pool.instance and shown in (("", ""), (pool.host, pool.name)))

    replies = tell_pools(link, asked, is_meant, verb, details or {})
    # A lost pool was not told: with it alone nothing was done, and beside others it does not make their answers bad.
    judged = [reply for reply in replies if not reply.is_lost]
    is_done = bool(judged) and all(reply.is_done for reply in judged)
    return Acted("; ".join(map(str, replies)), "/pools", is_done, is_untouched=not judged)


def tell_pools(
    link: StoreLink, asked: Asked, means: Callable[[PublishedPool], bool], verb: str, details: Mapping[str, Any]
) -> list[Reply]:
    """Send a command to the pools that are meant, and wait for their answers. Raises ``Refusal`` if there are none."""
    replies = list[Reply]()

    def tell(opened: Queue) -> None:
        post = Post(opened.stores, by_of(asked.visitor), means, replies.append)
        if not post.meant:
            raise Refusal(404, "this pool publishes nothing any more: look which ones there are")
        begun = time.monotonic()
        post.send(verb, {**details, "room": MAX_WORDS})
        _await(post, begun + TAKEN_WITHIN)
        post.withdraw()
        _await(post, begun + ANSWERED_WITHIN)
        post.give_up()

    link.do(tell)
    link.expire()
    return replies or [Reply("", "nothing was done")]


def _await(post: Post, until: float) -> None:
    while not post.has_answers() and time.monotonic() < until:
        time.sleep(_POLL)
