"""Jobs on their way from one slot to another: what follows a job, or is due, may belong to a queue of another hash tag.

The step that ends the job, or settles the due time, pushes to a queue in its own slot, the relay. From there the job is
carried to its queue by a number of its own, by which it arrives once, whoever carries it and dies meanwhile: the
process that has pushed it does so at once, and stewards carry what is left over.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from queuepool.errors import StoreDown, StoreError
from queuepool.stores.contract import UNDER_WAY, NewJob
from queuepool.stores.redis.spread.groups import Groups, TagGroup

#: jobs that are read at once
_PAGE = 100


def relay_of(tag: str) -> str:
    """The queue of jobs that leave the slot of this hash tag; no pool serves it."""
    return f"{{{tag}}}:relay"


def parcel(queue: str, payload: bytes) -> bytes:
    """A job that is to be carried to this queue."""
    return f"{secrets.token_hex(16)} {queue}\n".encode() + payload


def carry(group: TagGroup, groups: Groups) -> None:
    """Carry all that waits in this group's relay. Raises ``StoreError`` if some stays."""
    relay, problem, left = group.keys.ready(relay_of(group.tag)), None, 0
    group.client.command("DEL", group.keys.notify(relay_of(group.tag)))
    while parcels := group.client.command("LRANGE", relay, left, left + _PAGE - 1):
        for one in parcels:
            try:
                _deliver(one, group, groups)
            except StoreError as error:  # one that is refused must not block the others
                problem, left = error, left + 1
    if problem:
        raise problem


def _deliver(one: bytes, group: TagGroup, groups: Groups) -> None:
    head, _, payload = one.partition(b"\n")
    number, _, queue = head.decode().partition(" ")
    target = groups.of(queue)
    until = target.ask(target.records.now) + UNDER_WAY
    target.ask(lambda: target.arrivals.admit(queue, NewJob(payload), None, number, until))
    group.client.command("LREM", group.keys.ready(relay_of(group.tag)), 1, one)
    with suppress(StoreDown):  # else it is known for longer
        target.ask(lambda: target.arrivals.forget([number]))
