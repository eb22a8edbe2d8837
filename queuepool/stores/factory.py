"""Builds the stores from settings: the only place that does, and that names the drivers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from queuepool.config.connections import check_drivers, lock_urls_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import ConfigError
from queuepool.stores.batches import Batches
from queuepool.stores.clients import REPLY_TIMEOUT as REPLY_TIMEOUT
from queuepool.stores.clients import Clients, alert_keys, history, keys_of
from queuepool.stores.contract import Pushes, QueueStore
from queuepool.stores.control import Cache, ControlKeys, Place, lock_prefix_of, maintenance_key_of, prefix_of
from queuepool.stores.history import History
from queuepool.stores.locks import Locks, LocksOf
from queuepool.stores.measured import Measures
from queuepool.stores.room import Room, ToldByWrites
from queuepool.stores.schedules import Schedules
from queuepool.stores.set_aside import FailedStore, Outbox, QuarantineStore, Records
from queuepool.stores.split_failed import FailedElsewhere, Forwarder
from queuepool.stores.split_locks import LocksElsewhere
from queuepool.stores.states import JobStates

if TYPE_CHECKING:
    from queuepool.stores.alerts import AlertKeys
    from queuepool.stores.sql.borrowed import Borrowing

#: how errors name the stores other than the queue's
FAILED, CONTROL, BATCHES = "failed store", "control store", "batches"


class Stores:
    """All the stores of one connection's settings; nothing is sent before the first verb.

    ``shared``: for the threads of a producer, not for one loop. ``reply_timeout``: seconds after which a silent server
    counts as gone. ``by_hand``: for a person, who waits longer. Raises ``ConfigError`` if a driver is missing.
    """

    queue: QueueStore
    failed: FailedStore
    quarantine: QuarantineStore
    control: ControlKeys
    schedules: Schedules
    states: JobStates
    measures: Measures
    room: Room
    locks: Mapping[str, Locks]  # by the URL of their place: the jobs' own store, and those that have Laravel's
    #: forwards failures to the failed store, if that is on another server
    forwarder: Forwarder | None = None
    #: pushes in transactions of the application's; ``None`` in Redis, which has none
    borrowing: Borrowing | None = None
    #: Laravel's unique locks elsewhere than beside the queue, with the kind of each store; its default cache's first
    laravel_locks: list[tuple[str, Locks]]
    _outbox: Outbox

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        shared: bool = False,
        by_hand: bool = False,
        reply_timeout: float | None = None,
    ) -> None:
        check_drivers(settings)
        self.settings = settings
        self._shared = shared
        self._clients = Clients(settings, shared=shared, by_hand=by_hand, reply_timeout=reply_timeout)
        self._own: Any
        records = self._records(settings.failed_url) if settings.failed_url else None
        self._is_split = records is not None
        cache = self._control_cache(settings.control_url) if settings.control_url else None
        self.locks_at = self._clients.locks
        elsewhere = {url: self.locks_at(url) for url in lock_urls_of(settings)}
        self.laravel_locks = [(kind_of(url), locks) for url, locks in elsewhere.items()]
        self._locks_of = LocksOf(kind_of(settings.url), self.laravel_locks)
        own, down = self._in_redis() if is_redis(settings.url) else self._in_sql()
        self.locks = {settings.url: self._locks_of.own, **elsewhere}
        if records:
            self.failed = FailedElsewhere(records, self.queue)
            self.forwarder = Forwarder(self._outbox, records)
        self.control = self._control(cache or own, Place(own, down))

    @cached_property
    def batches(self) -> Batches:
        """Laravel's batches. Raises ``ConfigError`` if no database is known to have them."""
        settings = self.settings
        url = settings.batches_url or settings.failed_url or settings.url
        if is_redis(url):
            raise ConfigError("[connection] batches_url", "not set, and Laravel keeps batches in a database")
        from queuepool.stores.sql.batches import SqlBatches

        return SqlBatches(self._own if url == settings.url else self._clients.sql(url, BATCHES))

    @cached_property
    def history(self) -> History:
        """What the pools have kept of their past, beside the queue."""
        return history(self._own, self.settings)

    @cached_property
    def pushes(self) -> Pushes:
        """What a producer pushes to."""
        return LocksElsewhere(self.queue, self.laravel_locks[0][1]) if self.laravel_locks else self.queue

    @cached_property
    def alerts(self) -> AlertKeys:
        """Which pool sends the notices of alerts."""
        return alert_keys(self._own, self.settings)

    @property
    def client(self) -> Any:
        """The client that the queue uses, for code that bypasses the contract."""
        return self._own

    def examine(self, queue: str) -> None:
        """Raise ``StoreUnfit`` when the server is unsuitable, ``StoreError`` when that cannot be determined."""
        if is_redis(self.settings.url):
            self.queue.sizes(queue)  # reads keys that a cluster would spread, with a worker's rights
        else:
            self._own.examine()

    def close(self) -> None:
        """Close all connections; the next verb would open them again."""
        self._clients.close()

    def _in_redis(self) -> tuple[Cache, str]:
        from queuepool.stores.redis.cache import RedisCache
        from queuepool.stores.redis.failed import RedisFailed
        from queuepool.stores.redis.measures import RedisMeasures
        from queuepool.stores.redis.outbox import RedisOutbox
        from queuepool.stores.redis.quarantine import RedisQuarantine
        from queuepool.stores.redis.queue import RedisQueue
        from queuepool.stores.redis.room import RedisRoom
        from queuepool.stores.redis.schedules import RedisSchedules
        from queuepool.stores.redis.states import RedisStates

        settings, keys = self.settings, keys_of(self.settings)
        longest_wait = 0.0 if self._shared else settings.block_for
        self._own = client = self._clients.redis(settings.url, longest_wait=longest_wait)
        about = {"keep": self._keeps, "outbox": self._is_split}
        self.queue = RedisQueue(client, keys, settings.retry_after, locks=self._locks_of, **about)
        self._outbox = RedisOutbox(client, keys)
        self.failed = RedisFailed(client, keys, self._locks_of)
        self.quarantine = RedisQuarantine(client, keys, self._locks_of)
        self.schedules = RedisSchedules(client, keys)
        self.states = RedisStates(client, keys)
        self.measures = RedisMeasures(client, keys)
        self.room = RedisRoom(client, keys)
        return RedisCache(client, keys), keys.down

    def _in_sql(self) -> tuple[Cache, str]:
        from queuepool.stores.sql.borrowed import Borrowing
        from queuepool.stores.sql.cache import SqlCache
        from queuepool.stores.sql.clearing import Clearing
        from queuepool.stores.sql.dropped_locks import DroppedLocks
        from queuepool.stores.sql.endings import SqlEndings
        from queuepool.stores.sql.failed import SqlFailed
        from queuepool.stores.sql.failed_table import Failures
        from queuepool.stores.sql.jobs_table import JobsTable
        from queuepool.stores.sql.leases import Leases
        from queuepool.stores.sql.locks import SqlLocks
        from queuepool.stores.sql.measures import SqlMeasures
        from queuepool.stores.sql.outbox import SqlOutbox
        from queuepool.stores.sql.quarantine import SqlQuarantine
        from queuepool.stores.sql.queue import SqlQueue
        from queuepool.stores.sql.schedules import SqlSchedules
        from queuepool.stores.sql.states import SqlStates

        settings, prefix = self.settings, prefix_of(self.settings.restart_key)
        self._own = client = self._clients.sql(settings.url)
        cache, failures = SqlCache(client, prefix), Failures(settings.name, client.tables.failed_jobs)
        table = JobsTable(client, settings.retry_after)
        leases = Leases(client, table, failures)
        locks = SqlLocks(client, lock_prefix_of(settings, "sql"))
        self.schedules = SqlSchedules(client, table, locks, prefix)
        self.states = states = SqlStates(client, leases, prefix)
        self.measures = SqlMeasures(client, failures)
        self.room = ToldByWrites()
        endings = SqlEndings(table, locks, self._locks_of, states)
        about = {"keep": self._keeps, "outbox": self._is_split}
        dropped = DroppedLocks(locks, self._locks_of)
        self.queue = SqlQueue(client, table, leases, cache, endings, failures, Clearing(client, dropped), **about)
        self.borrowing = Borrowing(client, endings)
        self._outbox = SqlOutbox(client)
        self.failed = SqlFailed(client, failures, table.push, states.write_within, dropped)
        self.quarantine = SqlQuarantine(client, failures, table.push, dropped)
        return cache, f"{prefix}queuepool:down"

    @property
    def _keeps(self) -> bool:
        return self.settings.failed != "null"

    def _records(self, url: str) -> Records:
        """The failed store at ``failed_url``."""
        if is_redis(url):
            from queuepool.stores.redis.failed import RedisFailed

            return RedisFailed(self._clients.redis(url, store=FAILED), keys_of(self.settings))
        from queuepool.stores.sql.failed import SqlFailed
        from queuepool.stores.sql.failed_table import Failures

        client = self._clients.sql(url, FAILED)
        return SqlFailed(client, Failures(self.settings.name, client.tables.failed_jobs), None)

    def _control(self, cache: Cache, down: Place) -> ControlKeys:
        settings = self.settings
        caches = {settings.url: down.cache, settings.control_url or settings.url: cache}
        url = settings.maintenance_url or settings.control_url or settings.url
        key = settings.maintenance_key or maintenance_key_of(settings.restart_key)
        maintenance = Place(caches.get(url) or self._control_cache(url), key)
        return ControlKeys(Place(cache, settings.restart_key), maintenance, down, settings.name)

    def _control_cache(self, url: str) -> Cache:
        """Laravel's cache at ``control_url`` or ``maintenance_url``."""
        if is_redis(url):
            from queuepool.stores.redis.cache import RedisCache

            return RedisCache(self._clients.redis(url, store=CONTROL), keys_of(self.settings))
        from queuepool.stores.sql.cache import SqlCache

        return SqlCache(self._clients.sql(url, CONTROL), prefix_of(self.settings.restart_key))


def is_redis(url: str) -> bool:
    """Whether the URL's scheme is one of Redis; any other is a database's."""
    return kind_of(url) == "redis"
