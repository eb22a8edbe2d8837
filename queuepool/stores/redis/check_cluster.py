"""Check a cluster: whether it serves every slot, and the node that has all of our keys."""

from __future__ import annotations

from collections.abc import Iterator

from queuepool.config.connections import tag_of
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Grade, refusal
from queuepool.stores.redis.cluster import SLOTS


def inspect_cluster(stores: Stores) -> Iterator[tuple[Grade, str]]:
    """The findings about the cluster, as the owner of our slot sees it."""
    found: list[bytes] = []
    words = refusal(lambda: found.extend(stores.client.command("CLUSTER", what) for what in ("INFO", "NODES")))
    if words:
        yield Grade.WARN, f"the cluster's state and replicas are unknown: {words}"
        return
    yield _state(dict(line.split(":", 1) for line in found[0].decode().split()))
    yield from _owner(found[1].decode(), stores)


def _state(about: dict[str, str]) -> tuple[Grade, str]:
    served = int(about.get("cluster_slots_ok", 0))
    if about.get("cluster_state") == "ok" and served == SLOTS:
        return Grade.OK, f"the cluster serves all slots ({about.get('cluster_size')} masters)"
    return Grade.FAIL, f"cluster_state {about.get('cluster_state')}: {served} of {SLOTS} slots are served"


def _owner(nodes: str, stores: Stores) -> Iterator[tuple[Grade, str]]:
    """Each line: id, address, flags, master, ping, pong, epoch, link, slots; a slot that leaves as [slot->-id]."""
    rows = [line.split() for line in nodes.splitlines()]
    own = next(row for row in rows if "myself" in row[2])
    slot = stores.client.owner.slot
    replicas = [row for row in rows if row[3] == own[0] and "fail" not in row[2]]
    place = f"slot {slot} ({{{tag_of(stores.settings.prefix)}}}) is at {own[1].partition('@')[0]}"
    if any(word.startswith(f"[{slot}->-") for word in own):
        yield Grade.WARN, f"{place}, and being moved: nothing is pushed or run until that ends"
    if replicas:
        yield Grade.OK, f"{place}, with {len(replicas)} replica{'s' * (len(replicas) > 1)}"
    else:
        yield Grade.WARN, f"{place}, without a replica: if that node is lost, so is the queue until it is back"
