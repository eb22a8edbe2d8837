"""Check a cluster: whether it serves every slot, and the node that has all of our keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from queuepool.config.connections import is_spread, tag_of
from queuepool.stores.factory import Stores, keys_of
from queuepool.stores.finding import Grade, refusal
from queuepool.stores.redis.cluster import SLOTS


def inspect_cluster(stores: Stores, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    """The findings about the cluster, as the owner of our slot sees it, or the owner of each of our slots."""
    found: list[bytes] = []
    home = keys_of(stores.settings).room
    words = refusal(lambda: found.extend(_told_by_owner(stores.client, home)))
    if words:
        yield Grade.WARN, f"the cluster's state and replicas are unknown: {words}"
    else:
        yield _state(dict(line.split(":", 1) for line in found[0].decode().split()))
        yield from _owner(found[1].decode(), stores.client, tag_of(home))
    if is_spread(stores.settings):
        spread: Any = stores.queue
        for client, room in spread.slots_of(queues):
            yield from _owner_of(client, room)
    else:
        yield from _braced(stores, queues)


def _owner_of(client: Any, room: str) -> Iterator[tuple[Grade, str]]:
    """Where the queues of one hash tag are."""
    found: list[bytes] = []
    words = refusal(lambda: found.extend(_told_by_owner(client, room)))
    if words:
        yield Grade.WARN, f"the owner of slot {client.owner.slot} ({{{tag_of(room)}}}) is unknown: {words}"
    else:
        yield from _owner(found[1].decode(), client, tag_of(room))


def _told_by_owner(client: Any, room: str) -> list[bytes]:
    """Its INFO and NODES. A node that has just lost the slot answers these as well, but no command with a key."""
    ask = partial(client.command, "CLUSTER")
    if not _has_slot(_myself(ask("NODES").decode()), client.owner.slot):
        client.command("EXISTS", room)
    return [ask("INFO"), ask("NODES")]


def _has_slot(row: Sequence[str], slot: int) -> bool:
    bounds = (word.split("-") for word in row[8:] if not word.startswith("["))
    return any(int(first) <= slot <= int([first, *last][-1]) for first, *last in bounds)


def _myself(nodes: str) -> list[str]:
    return next(row for row in map(str.split, nodes.splitlines()) if "myself" in row[2])


def _state(about: dict[str, str]) -> tuple[Grade, str]:
    served = int(about.get("cluster_slots_ok", 0))
    if about.get("cluster_state") == "ok" and served == SLOTS:
        return Grade.OK, f"the cluster serves all slots ({about.get('cluster_size')} masters)"
    return Grade.FAIL, f"cluster_state {about.get('cluster_state')}: {served} of {SLOTS} slots are served"


def _owner(nodes: str, client: Any, tag: str) -> Iterator[tuple[Grade, str]]:
    """Each line: id, address, flags, master, ping, pong, epoch, link, slots; a slot that leaves as [slot->-id]."""
    rows = [line.split() for line in nodes.splitlines()]
    own = _myself(nodes)
    slot = client.owner.slot
    replicas = [row for row in rows if row[3] == own[0] and "fail" not in row[2]]
    place = f"slot {slot} ({{{tag}}}) is at {own[1].partition('@')[0]}"
    if any(word.startswith(f"[{slot}->-") for word in own):
        yield Grade.WARN, f"{place}, and being moved: nothing is pushed or run until that ends"
    if replicas:
        yield Grade.OK, f"{place}, with {len(replicas)} replica{'s' * (len(replicas) > 1)}"
    else:
        yield Grade.WARN, f"{place}, without a replica: if that node is lost, so is the queue until it is back"


def _braced(stores: Stores, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    """Queues that Laravel fills under another name: from 13.5 on, it puts names without a tag into braces."""
    for queue, there in ((queue, f"{{{queue}}}") for queue in queues if not tag_of(queue)):
        if there not in queues and _has_jobs(stores, there):
            yield Grade.WARN, f"Laravel's queue {queue} is {there} on a cluster, and has jobs: serve {there}"


def _has_jobs(stores: Stores, queue: str) -> bool:
    found: list[int] = []
    return not refusal(lambda: found.append(stores.queue.sizes(queue).total)) and found != [0]
