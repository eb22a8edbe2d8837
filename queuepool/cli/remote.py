"""Verbs for pools on any host: a command goes through the store to each pool that is meant, and each pool answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from queuepool.board.about import operator
from queuepool.cli import output
from queuepool.cli.options import Where
from queuepool.cli.targets import Elsewhere
from queuepool.cli.waiting import within
from queuepool.operating.notices import PublishedPool
from queuepool.operating.post import ANSWERED_WITHIN, TAKEN_WITHIN, Post, Reply
from queuepool.stores.commands import MAX_OF_ALL_WORDS, MAX_WORDS
from queuepool.stores.factory import Stores
from queuepool.unix.exit_codes import FAILED, NOT_RUNNING, OK

#: seconds between looks for answers, and for what the pools do then
_POLL, _SLOW_POLL = 0.1, 0.5
#: most pools that are named where none is meant
_MOST_NAMED = 20


def command(
    where: Where,
    elsewhere: Elsewhere,
    verb: str,
    details: Mapping[str, Any] | None = None,
    *,
    takes: float = 0.0,
    end_within: float = 0.0,
    renewed_within: float = 0.0,
) -> int:
    """Send it to each pool that is meant, and print the answer of each; returns the exit code.

    ``takes``: seconds that a pool may need for it, besides the usual ones; ``end_within`` and ``renewed_within``:
    seconds to wait, too, until the pools have ended, or the new code works in them.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(Stores(connection, by_hand=True))) for connection in where.connections()]
        told = _Told()
        posts = [Post(stores, operator(), elsewhere.means, told, where.pool_name) for stores in opened]
        _drop_repeated(posts)
        if not _are_there(posts, elsewhere):
            return NOT_RUNNING
        # The answers of all may come at once.
        room = MAX_OF_ALL_WORDS // max(sum(len(post.meant) for post in posts), 1)
        for post in posts:
            post.send(verb, {**(details or {}), "room": min(room, MAX_WORDS)})
        begun = time.monotonic()
        within(TAKEN_WITHIN, lambda: not [post for post in posts if not post.has_answers()], poll=_POLL)
        for post in posts:
            post.withdraw()
        rest = begun + ANSWERED_WITHIN + takes - time.monotonic()
        within(rest, lambda: not [post for post in posts if not post.has_answers()], poll=_POLL)
        for post in posts:
            post.give_up()
        if end_within:
            within(end_within, lambda: not [post for post in posts if not post.have_ended()], poll=_SLOW_POLL)
            for post in posts:
                post.tell_running(end_within)
        if renewed_within:
            within(renewed_within, lambda: not [post for post in posts if not post.are_renewed()], poll=_SLOW_POLL)
            for post in posts:
                post.tell_late()
        # Of a job that is looked for everywhere, all pools but one say that it is not there.
        return told.code if told.has_done_it else FAILED


class _Told:
    """Prints the replies."""

    def __init__(self) -> None:
        self.code = OK
        #: whether a pool has done it
        self.has_done_it = False

    def __call__(self, reply: Reply) -> None:
        if reply.is_done:
            output.show(str(reply))
            self.has_done_it = True
            return
        output.complain(str(reply))
        if not reply.is_elsewhere:
            self.code = FAILED


def _drop_repeated(posts: Sequence[Post]) -> None:
    """Each pool is told once, though several connections of the configuration may lead to its store."""
    seen = set[str]()
    for post in posts:
        post.meant = [pool for pool in post.meant if pool.instance not in seen]
        seen |= {pool.instance for pool in post.meant if pool.instance}


def _are_there(posts: Sequence[Post], elsewhere: Elsewhere) -> bool:
    """Whether each target names a pool; reports those that do not, and then nothing is sent."""
    known = [pool for post in posts for pool in post.known]
    missing = [target for target in elsewhere.targets if not any(target.means(pool) for pool in known)]
    for target in missing:
        output.complain(f"no pool {target} has published a notice; there are: {_listed(known)}")
    if not missing and not any(post.meant for post in posts):
        output.complain("no pool has published a notice")
        return False
    return not missing


def _listed(pools: Sequence[PublishedPool]) -> str:
    names = sorted(f"{pool.host}/{pool.name}" for pool in pools)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}" if names else "none"
