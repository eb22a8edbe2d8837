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

    It closes the connection of each wait that has not ended. Otherwise the server could give a token to a wait that is
    over, or its reply could be read as that of the next command.
    """
    ended = set[TagGroup]()
    try:
        _wait(dict(_begun(parts, timeout)), len(parts), timeout, ended)
    finally:
        for group in parts.keys() - ended:
            group.client.hang_up()


def _wait(waits: Mapping[TagGroup, PendingReplies], wanted: int, timeout: float, ended: set[TagGroup]) -> None:
    if not waits:
        raise PartDown("no node with these queues answers")
    longest, is_found = timeout + _TICK if len(waits) == wanted else min(timeout, _AWAY), False
    while len(ended) < len(waits) and not is_found:
        sockets = {waits[group].fileno(): group for group in waits.keys() - ended}
        come = readable(sockets, _TICK if ended else longest)
        for group in map(sockets.__getitem__, come):
            is_found |= _has_token(group, waits[group])
            ended.add(group)
        if not come:
            return


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
