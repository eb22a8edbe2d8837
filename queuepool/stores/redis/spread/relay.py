"""Jobs on their way from one slot to another: what follows a job, or is due, may belong to a queue of another hash tag.

The step that ends the job, or settles the due time, pushes to a queue in its own slot, the relay, and from there the
job is carried to its queue. It has a number, which its queue remembers: so it arrives once, although a process that
carries it may die and another one carry it again. The process that has pushed it carries it at once, and stewards carry
what is left over.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from contextlib import suppress

from queuepool.config.values import RELAY
from queuepool.errors import StoreDown, StoreError
from queuepool.stores.contract import UNDER_WAY, NewJob
from queuepool.stores.redis.spread.groups import Groups, TagGroup

#: jobs that are read at once, and pages in one look, as many may wait for a node that is away
_PAGE, _PAGES = 100, 10
#: a number, a queue's name in JSON, and the payload
_PARCEL = re.compile(rb'([0-9a-f]{32}) ("[ -~]*")\n(.*)', re.DOTALL)


def relay_of(tag: str) -> str:
    """The queue of jobs that leave the slot of this hash tag; no pool serves it."""
    return f"{{{tag}}}{RELAY}"


def parcel(queue: str, payload: bytes) -> bytes:
    """A job that is to be carried to this queue."""
    return f"{secrets.token_hex(16)} {json.dumps(queue)}\n".encode() + payload


def _opened(one: bytes) -> tuple[str, str, bytes]:
    """Its number, the queue, and the payload. Raises ``StoreError`` for anything else."""
    try:
        number, queue, payload = _PARCEL.fullmatch(one).groups()  # type: ignore[union-attr]
        return number.decode(), json.loads(queue), payload
    except (AttributeError, ValueError) as error:
        raise StoreError("what is on its way to another slot is damaged") from error


def carry(group: TagGroup, groups: Groups) -> None:
    """Carry what waits in this group's relay, the next time from where this look ended. Raises ``StoreError`` if some
    stays."""
    relay, problem = group.keys.ready(relay_of(group.tag)), None
    group.ask(lambda: group.client.command("DEL", group.keys.notify(relay_of(group.tag))))
    for _ in range(_PAGES):
        begin, read_at = group.left_over, time.monotonic()
        parcels = group.ask(lambda: group.client.command("LRANGE", relay, begin, begin + _PAGE - 1))  # noqa: B023
        for one in parcels:
            try:
                deliver(one, read_at, group, groups)
            except StoreError as error:  # one that is refused must not block the others
                problem, group.left_over = error, group.left_over + 1
        if len(parcels) < _PAGE:
            group.left_over = 0
            break
    if problem:
        raise problem


def deliver(one: bytes, read_at: float, group: TagGroup, groups: Groups) -> None:
    """Carry a parcel that was in this group's relay at ``read_at`` (monotonic). Raises ``StoreError`` if it stays."""
    number, queue, payload = _opened(one)
    target = groups.of(queue)
    # Counted from when it was there, as another process may have carried it since, and its number may be forgotten.
    until = target.ask(target.records.now) + UNDER_WAY - (time.monotonic() - read_at)
    target.ask(lambda: target.arrivals.admit(queue, NewJob(payload), None, number, until))
    group.client.command("LREM", group.keys.ready(relay_of(group.tag)), 1, one)
    with suppress(StoreDown):  # else it is known for longer
        target.ask(lambda: target.arrivals.forget([number]))
