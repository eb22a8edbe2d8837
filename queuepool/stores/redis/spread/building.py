"""Builds the stores of a connection whose queues are in slots of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from queuepool.config.connections import NO_TAG
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.payload.lease import Lease
from queuepool.stores.elsewhere import FailedElsewhere
from queuepool.stores.locks import Locks
from queuepool.stores.redis.cluster import ClusterClient
from queuepool.stores.redis.nodes import Node, Nodes
from queuepool.stores.redis.queue import RedisQueue
from queuepool.stores.redis.reassertion import RedisReassertion
from queuepool.stores.redis.spread.beside import LocksApart, SpreadAttempts, SpreadRecords, SpreadSteps, SpreadValues
from queuepool.stores.redis.spread.groups import Groups, TagGroup
from queuepool.stores.redis.spread.queue import SpreadQueue
from queuepool.stores.redis.wire import TaggedKeys


class SpreadStores(NamedTuple):
    """As in ``Stores``."""

    client: ClusterClient
    values: SpreadValues
    records: SpreadRecords
    failed: FailedElsewhere
    attempts: SpreadAttempts
    steps: SpreadSteps
    queue: SpreadQueue
    reassertion: SpreadReassertion
    ask_again: Callable[[], None]


class SpreadReassertion:
    """As ``RedisReassertion``, in each group: a node's place may be taken by a replica."""

    def __init__(self, groups: Groups, retry_after: float) -> None:
        self._groups = groups
        self._retry_after = retry_after

    def come_after(self) -> None:
        """As there."""
        self._groups.on_new(lambda group: self._of(group).come_after())

    def follow(self, changed: Callable[[], object]) -> None:
        """As there, of groups that are used from now on, too."""
        self._groups.on_new(lambda group: self._of(group).follow(changed))

    def reassert(self, leases: Sequence[Lease]) -> list[bool | None]:
        """As there; ``None`` where the node is away."""
        return self._groups.of_leases(leases, lambda group, own: self._of(group).reassert(own))

    def _of(self, group: TagGroup) -> RedisReassertion:
        return RedisReassertion(group.queue, self._retry_after)


def spread_stores(
    settings: ConnectionSettings,
    keys: TaggedKeys,
    open_client: Callable[..., Any],
    laravel_locks: Sequence[tuple[str, Locks]],
    *,
    is_patient: bool,
) -> SpreadStores:
    """All that is built for Redis. ``open_client`` takes the prefix of its keys; ``is_patient`` as for ``TagGroup``.

    Raises ``ConfigError`` for a prefix that would spread the keys of a queue.
    """
    if "{" in settings.prefix:
        raise ConfigError("[connection] prefix", NO_TAG)

    def group(tag: str) -> TagGroup:
        own = TaggedKeys(settings.prefix, tag)
        client = open_client(prefix=f"{settings.prefix}{{{tag}}}:")
        queue = RedisQueue(client, own, settings.retry_after, locks_of, keep=settings.failed != "null", outbox=True)
        return TagGroup(tag, client, own, queue, silent, is_patient=is_patient)

    @cache
    def at_slot(slot: int) -> ClusterClient:
        client: ClusterClient = open_client()
        client.owner.slot = slot
        return client

    open_client = _with_shared_connections(open_client) if is_patient else open_client
    silent: dict[Node | None, tuple[float, str]] = {}
    home, groups = open_client(), Groups(group)
    values = SpreadValues(home, keys, groups)
    locks_of = LocksApart("", values, [("redis", values), *laravel_locks])
    records = SpreadRecords(home, keys, locks_of, groups, is_elsewhere=bool(settings.failed_url))
    queue = SpreadQueue(home, keys, groups, locks_of, values, records, at_slot)
    failed = FailedElsewhere(records, queue, records)
    reassertion = SpreadReassertion(groups, settings.retry_after)
    return SpreadStores(
        home, values, records, failed, SpreadAttempts(groups), SpreadSteps(groups), queue, reassertion, groups.ask_again
    )


def _with_shared_connections(open_client: Callable[..., Any]) -> Callable[..., Any]:
    """The same for threads, whose connections are to nodes, not to slots."""
    nodes = Nodes()

    def opened(**about: Any) -> Any:
        client = open_client(**about)
        client.share(nodes)
        return client

    return opened
