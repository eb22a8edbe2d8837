"""Wait for jobs in several groups at once: one blocked command on the connection of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from queuepool.errors import PartDown, StoreError
from queuepool.stores.redis.connections import PendingReplies
from queuepool.stores.redis.spread.groups import TagGroup
from queuepool.unix.originals import readable

#: seconds by which a server may end a wait late; and after which a node that was away is asked again
_TICK, _AWAY = 0.15, 1.0


def wait_for_any(parts: Mapping[TagGroup, Sequence[str]], timeout: float) -> None:
    """Block until a job may be ready in one of them, or the time is over; a signal handler may raise out of it.

    The waits of the others are given up with their connections: else they would take tokens while nobody waits.
    """
    waits = dict(_begun(parts, timeout))
    if not waits:
        raise PartDown("no node with these queues answers")
    longest = timeout + _TICK if len(waits) == len(parts) else min(timeout, _AWAY)
    ended = list[TagGroup]()
    try:
        while len(ended) < len(waits):
            pending = [group for group in waits if group not in ended]
            come = readable([waits[group].fileno() for group in pending], _TICK if ended else longest)
            now_ended = [group for group in pending if waits[group].fileno() in come]
            ended += now_ended
            tokens = [_has_token(group, waits[group]) for group in now_ended]
            if not now_ended or any(tokens):
                return
    finally:
        for group, replies in waits.items():
            if group not in ended:
                replies.give_up()


def _begun(parts: Mapping[TagGroup, Sequence[str]], timeout: float) -> Iterator[tuple[TagGroup, PendingReplies]]:
    for group, queues in parts.items():
        words = "BLPOP", *map(group.keys.notify, queues), f"{max(timeout, 0.001):.3f}"
        with suppress(PartDown):
            yield group, group.ask(lambda group=group, words=words: group.client.begin_wait(*words))  # type: ignore[misc]


def _has_token(group: TagGroup, replies: PendingReplies) -> bool:
    """Whether there may be a job: also if the wait was refused, as the next reserve shows why."""
    try:
        return group.client.reply(replies, "blpop") is not None
    except StoreError:
        return True
