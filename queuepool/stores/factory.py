"""Builds the stores from settings; the only place that does, and that names the drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from queuepool.config import sentinels
from queuepool.config.connections import check_drivers, home_of, is_spread, lock_urls_of, tag_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import is_cluster, kind_of, scheme_of
from queuepool.errors import ConfigError
from queuepool.payload.signing import signer_of
from queuepool.stores.attempts import Attempts
from queuepool.stores.batches import Batches
from queuepool.stores.commands import CommandPost
from queuepool.stores.contract import PushStore, QueueStore
from queuepool.stores.control import ControlKeys, KeyPlace, lock_prefix_of, maintenance_key_of, prefix_of
from queuepool.stores.elsewhere import FailedElsewhere, Forwarder, LocksElsewhere
from queuepool.stores.flows import Flows
from queuepool.stores.journal import Journal
from queuepool.stores.kept_steps import KeptSteps
from queuepool.stores.limits import JobLimits
from queuepool.stores.locks import Locks, LocksOf
from queuepool.stores.records import FailedStore, Records
from queuepool.stores.values import Values

if TYPE_CHECKING:
    from queuepool.stores.arrivals import Arrivals
    from queuepool.stores.horizon import HorizonKeys
    from queuepool.stores.laravel_cache import LaravelCache, Uses
    from queuepool.stores.redis.client import RedisClient
    from queuepool.stores.redis.reassertion import RedisReassertion
    from queuepool.stores.redis.sentinel import Told
    from queuepool.stores.redis.wire import Keys
    from queuepool.stores.sql.borrowed import Borrowing
    from queuepool.stores.sql.client import SqlClient
    from queuepool.stores.sql.jobs_table import JobsTable
    from queuepool.stores.sql.values import SqlValues

#: how errors name the stores other than the queue's
FAILED, CONTROL, BATCHES, LOCKS = "failed store", "control store", "batches", "lock store"
#: seconds after which a silent server counts as gone, for a loop; for a producer there is a setting
REPLY_TIMEOUT = 2.0
_LOOP_TIMEOUTS = {"redis": REPLY_TIMEOUT, "sql": 3.0}
#: the same for a person, whose command may count millions of rows
_PERSON_TIMEOUTS = {"redis": 7.0, "sql": 60.0}
#: seconds for which a producer waits while others write to its SQLite file: writers do not take turns there
_LOCK_TIMEOUT = 60.0


class Stores:
    """All the stores of one connection's settings; nothing is sent before the first verb.

    ``shared``: for the threads of a producer, not for one loop. ``reply_timeout``: seconds after which a silent server
    counts as gone. ``by_hand``: for a person, who waits longer. Raises ``ConfigError`` if a driver is missing.
    """

    queue: QueueStore
    failed: FailedStore
    #: all that is set aside beside the jobs
    records: Records
    #: the values beside the jobs
    values: Values
    #: those that have ended lately, where a pool keeps them
    attempts: Attempts
    #: what is kept of the steps of jobs
    steps: KeptSteps
    flows: Flows
    limits: JobLimits
    control: ControlKeys
    #: by URL: those in the jobs' own store, and in the stores of Laravel's cache
    locks: Mapping[str, Locks]
    #: forwards failures to the failed store, if that is on another server
    forwarder: Forwarder | None = None
    #: for a steward where another server answers; ``None`` in databases
    reassertion: RedisReassertion | None = None
    #: has the next calls ask also nodes that are left alone as they did not answer; ``None`` where there is one server
    ask_again: Callable[[], object] | None = None
    #: pushes in the application's transactions; ``None`` in Redis, which has none
    borrowing: Borrowing | None = None
    #: Laravel's unique locks in stores other than the queue's, with their kinds; its default cache's first
    laravel_locks: list[tuple[str, Locks]]

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
        elsewhere = {url: self.locks_at(url) for url in lock_urls_of(settings)}
        self.laravel_locks = [(kind_of(url), locks) for url, locks in elsewhere.items()]
        build = self._in_redis if is_redis(settings.url) else self._in_sql
        down = build()
        self.locks = {settings.url: self.values, **elsewhere}
        if not is_spread(settings):
            self.failed = self.records
        if settings.failed_url:
            records = self._records_at(settings.failed_url)
            self.failed = FailedElsewhere(records, self.queue, self.records)
            self.forwarder = Forwarder(self.records, records)
        self.control = self._control(KeyPlace(self.values, down))

    @cached_property
    def journal(self) -> Journal:
        """Who has done what."""
        return Journal(self.values, self.queue.now, self.control.note_news)

    @cached_property
    def laravel_cache(self) -> LaravelCache:
        """Laravel's cache, for what its job middleware keeps there."""
        from queuepool.stores.laravel_cache import LaravelCache

        settings = self.settings
        values = self._values_at(settings.control_url, CONTROL) if settings.control_url else self.values
        locks = self.laravel_locks[0][1] if self.laravel_locks else self.values
        durations = self._durations() if is_redis(settings.url) else None
        return LaravelCache(locks, values, prefix_of(settings.restart_key), durations)

    def _durations(self) -> Uses:
        if is_spread(self.settings):
            from queuepool.stores.redis.spread.beside import DurationsRefused

            return DurationsRefused()
        from queuepool.stores.redis.durations import RedisDurations

        return RedisDurations(self._own, keys_of(self.settings))

    @cached_property
    def commands(self) -> CommandPost:
        """The channel from operators to pools on other hosts."""
        signer = signer_of(self.settings.signing, self.settings.signing_keys)
        return CommandPost(self.values, self.control.announce, signer)

    @cached_property
    def batches(self) -> Batches:
        """Laravel's batches. Raises ``ConfigError`` if no database with them is configured."""
        settings = self.settings
        url = settings.batches_url or settings.failed_url or settings.url
        if is_redis(url):
            raise ConfigError("[connection] batches_url", "not set, and Laravel keeps batches in a database")
        from queuepool.stores.sql.batches import SqlBatches

        return SqlBatches(self._own if url == settings.url else self._clients.sql(url, BATCHES))

    @cached_property
    def arrivals(self) -> Arrivals:
        """Jobs that come from other stores."""
        settings, client = self.settings, self._own
        if is_spread(settings):
            from queuepool.stores.redis.spread.beside import ArrivalsRefused

            return ArrivalsRefused(client, keys_of(settings))
        if is_redis(settings.url):
            from queuepool.stores.redis.arrivals import RedisArrivals

            return RedisArrivals(client, keys_of(settings))
        from queuepool.stores.sql.arrivals import SqlArrivals
        from queuepool.stores.sql.jobs_table import JobsTable

        table = JobsTable(client, settings.retry_after)
        return SqlArrivals(client, table, _sql_values(client, table, settings))

    @cached_property
    def pushes(self) -> PushStore:
        """What a producer pushes to."""
        return LocksElsewhere(self.queue, self.laravel_locks[0][1]) if self.laravel_locks else self.queue

    def horizon(self, prefix: str) -> HorizonKeys:
        """The keys of Laravel Horizon, beside the jobs. On a cluster, another tag is perhaps at another node."""
        from queuepool.stores.horizon import HorizonKeys

        url, is_apart = self.settings.url, is_cluster(self.settings.url)
        return HorizonKeys(self._clients.redis(url, prefix=prefix) if is_apart else self._own, prefix)

    @property
    def client(self) -> Any:
        """The client that the queue uses, for code that bypasses the contract."""
        return self._own

    def examine(self, queue: str) -> None:
        """Raise ``StoreUnfit`` if the server is unsuitable, ``StoreError`` if that cannot be determined."""
        if is_redis(self.settings.url):
            self.queue.sizes(queue)  # with a worker's rights; a cluster refuses, as it spreads these keys
        else:
            self._own.examine()

    def close(self) -> None:
        """Close all connections; the next verb would open them again."""
        self._clients.close()

    def locks_at(self, url: str) -> Locks:
        """Laravel's unique locks in the store at ``url``."""
        return self._values_at(url, LOCKS)

    def _in_redis(self) -> str:
        """Build the stores beside the jobs; returns the key of our own maintenance mode."""
        from queuepool.stores.redis.attempts import RedisAttempts
        from queuepool.stores.redis.kept_steps import RedisKeptSteps
        from queuepool.stores.redis.queue import RedisQueue
        from queuepool.stores.redis.reassertion import RedisReassertion
        from queuepool.stores.redis.records import RedisRecords
        from queuepool.stores.redis.values import RedisValues

        settings, keys = self.settings, keys_of(self.settings)
        if is_spread(settings):  # which waits on several connections at once, outside of their clients
            self._in_slots(keys, partial(self._clients.redis, settings.url, has_jobs=True))
            return keys.down
        longest_wait = 0.0 if self._shared else settings.block_for
        self._own = client = self._clients.redis(settings.url, longest_wait, has_jobs=True)
        self.values = values = RedisValues(client, keys)
        locks_of = LocksOf("redis", values, self.laravel_locks)
        self.records = RedisRecords(client, keys, locks_of, lambda: queue.clock)
        self.attempts = RedisAttempts(client, keys)
        self.steps = RedisKeptSteps(client, keys)
        self.queue = queue = RedisQueue(client, keys, settings.retry_after, locks_of, **self._kept)
        self.flows = queue.flows
        self.limits = queue.limits
        self.reassertion = RedisReassertion(queue, settings.retry_after)
        return keys.down

    def _in_slots(self, keys: Any, open_client: Callable[..., RedisClient]) -> None:
        """As ``_in_redis``, on a cluster where each queue is in the slot of its own hash tag."""
        from queuepool.stores.redis.spread.building import spread_stores  # imported here: few connections are

        built: Any = spread_stores(self.settings, keys, open_client, self.laravel_locks, is_patient=self._shared)
        self._own, self.values, self.records, self.failed, self.attempts, self.steps, self.queue = built[:-2]
        self.flows, self.limits, self.reassertion = self.queue.flows, self.queue.limits, built.reassertion
        self.ask_again = built.ask_again

    def _in_sql(self) -> str:
        """As ``_in_redis``."""
        from queuepool.stores.sql.attempts import SqlAttempts
        from queuepool.stores.sql.borrowed import Borrowing
        from queuepool.stores.sql.jobs_table import JobsTable
        from queuepool.stores.sql.kept_steps import SqlKeptSteps
        from queuepool.stores.sql.queue import SqlQueue
        from queuepool.stores.sql.records import SqlRecords

        settings = self.settings
        self._own = client = self._clients.sql(settings.url)
        table = JobsTable(client, settings.retry_after)
        self.values = values = _sql_values(client, table, settings)
        locks_of = LocksOf("sql", values, self.laravel_locks)
        self.records = records = SqlRecords(client, settings.name, table, values, locks_of)
        self.attempts = attempts = SqlAttempts(client, prefix_of(settings.restart_key))
        self.queue = queue = SqlQueue(client, table, records, values, locks_of, attempts, **self._kept)
        self.steps = SqlKeptSteps(client, queue.leases)
        self.flows = queue.flows
        self.limits = queue.limits
        self.borrowing = Borrowing(client, queue)
        return f"{prefix_of(settings.restart_key)}queuepool:down"

    @property
    def _kept(self) -> dict[str, bool]:
        """Whether failed jobs are recorded, and whether their records only wait here for another store."""
        return {"keep": self.settings.failed != "null", "outbox": bool(self.settings.failed_url)}

    def _records_at(self, url: str) -> Records:
        """The failed store at ``failed_url``."""
        settings = self.settings
        if is_redis(url):
            from queuepool.stores.redis.records import RedisRecords
            from queuepool.stores.redis.values import RedisValues

            server, keys = self._clients.redis(url, store=FAILED), keys_of(settings)
            return RedisRecords(server, keys, LocksOf("redis", RedisValues(server, keys)))
        from queuepool.stores.sql.jobs_table import JobsTable
        from queuepool.stores.sql.records import SqlRecords

        client = self._clients.sql(url, FAILED)
        table = JobsTable(client, settings.retry_after)
        values = _sql_values(client, table, settings)
        return SqlRecords(client, settings.name, table, values, LocksOf("sql", values))

    def _values_at(self, url: str, store: str) -> Values:
        """Laravel's cache at ``control_url`` or ``maintenance_url``, or its locks; errors name it by ``store``."""
        if is_redis(url):
            from queuepool.stores.redis.values import RedisValues

            return RedisValues(self._clients.redis(url, store=store), keys_of(self.settings))
        from queuepool.stores.sql.jobs_table import JobsTable

        client = self._clients.sql(url, store)
        return _sql_values(client, JobsTable(client, self.settings.retry_after), self.settings)

    def _control(self, down: KeyPlace) -> ControlKeys:
        settings = self.settings
        cache = self._values_at(settings.control_url, CONTROL) if settings.control_url else down.cache
        caches = {settings.url: down.cache, settings.control_url or settings.url: cache}
        url = settings.maintenance_url or settings.control_url or settings.url
        key = settings.maintenance_key or maintenance_key_of(settings.restart_key)
        maintenance = KeyPlace(caches.get(url) or self._values_at(url, CONTROL), key)
        return ControlKeys(KeyPlace(cache, settings.restart_key), maintenance, down, settings.name)


class Clients:
    """Makes the clients and closes them; the arguments are those of ``Stores``."""

    def __init__(
        self, settings: ConnectionSettings, *, shared: bool, by_hand: bool, reply_timeout: float | None
    ) -> None:
        self._settings = settings
        self._shared = shared
        self._by_hand = by_hand
        self._reply_timeout = reply_timeout
        self._clients: list[Any] = []

    def redis(
        self, url: str, longest_wait: float = 0.0, store: str = "", prefix: str = "", *, has_jobs: bool = False
    ) -> RedisClient:
        """A client for the server at ``url``; errors name it by ``store``.

        ``prefix`` of its keys, if not ours; ``has_jobs``: that of the queue.
        """
        reply_timeout = self._timeout_of("redis")
        from queuepool.stores.redis.clients import client_class

        client = client_class(url, self._settings, reply_timeout if has_jobs else 0.0, prefix)(
            url, longest_wait=longest_wait, shared=self._shared, reply_timeout=reply_timeout, store=store
        )
        self._clients.append(client)
        return client

    def sql(self, url: str, store: str = "") -> SqlClient:
        """A client for the database at ``url``; errors name it by ``store``."""
        from queuepool.stores.sql.client import SqlClient
        from queuepool.stores.sql.tables import TableNames, tables_of

        create = self._settings.embedded and url == self._settings.url
        reply_timeout = self._timeout_of("sql")
        if self._shared and scheme_of(url) == "sqlite":
            reply_timeout = max(reply_timeout, _LOCK_TIMEOUT)
        tables = tables_of(TableNames.of(self._settings, url))
        about: dict[str, Any] = {"store": store, "tables": tables, "migrate": self._settings.migrate}
        client = SqlClient(url, shared=self._shared, timeout=reply_timeout, create=create, **about)
        self._clients.append(client)
        return client

    def close(self) -> None:
        """Close all connections; the next verb would open them again."""
        for client in self._clients:
            client.close()

    def _timeout_of(self, kind: str) -> float:
        if self._reply_timeout or not self._shared:
            return self._reply_timeout or _LOOP_TIMEOUTS[kind]
        return max(self._settings.timeout, _PERSON_TIMEOUTS[kind]) if self._by_hand else self._settings.timeout


def load_drivers(settings: ConnectionSettings) -> None:
    """Import the drivers of all stores, and read our scripts for them. Opens no connection."""
    controls = settings.control_url, settings.maintenance_url, settings.lock_url
    for url in (settings.url, settings.failed_url, *controls, settings.batches_url):
        if url and kind_of(url) == "redis":
            from queuepool.stores.redis.clients import client_class
            from queuepool.stores.redis.scripts import load_all

            load_all()
            client_class(url, settings, REPLY_TIMEOUT)
        elif url:
            from queuepool.stores.sql.engines import load_driver

            load_driver(url)


def follow_primary(settings: ConnectionSettings, told: Told, moved: Callable[[], object]) -> None:
    """Where sentinels name the primary: follow them all, in threads, and write into ``told`` where it is.

    ``moved``: called in such a thread when it is elsewhere.
    """
    if sentinels.is_of_sentinels(settings.url):
        from queuepool.stores.redis.followed import Follower
        from queuepool.stores.redis.sentinel import whereabouts

        Follower(whereabouts(settings.url), told, moved).begin()


def primary_as_told(settings: ConnectionSettings, told: Told) -> Callable[[], object] | None:
    """Have all connections of this process go where ``told`` says; ``None`` where no sentinels name the primary.

    Returns what ends all waits for answers from where it was; a signal's handler may call it.
    """
    if not sentinels.is_of_sentinels(settings.url):
        return None
    from queuepool.stores.redis.sentinel import whereabouts

    place = whereabouts(settings.url)
    place.read(told)
    return place.sever


def keys_of(settings: ConnectionSettings) -> Keys:
    """The names of the keys in Redis."""
    from queuepool.stores.redis.wire import Keys, TaggedKeys

    locks, home = lock_prefix_of(settings, "redis"), home_of(settings)
    return Keys(settings.prefix, locks) if home == settings.prefix else TaggedKeys(settings.prefix, tag_of(home), locks)


def _sql_values(client: SqlClient, table: JobsTable, settings: ConnectionSettings) -> SqlValues:
    from queuepool.stores.sql.values import SqlValues

    return SqlValues(client, table, prefix_of(settings.restart_key), lock_prefix_of(settings, "sql"))


def is_redis(url: str) -> bool:
    """Whether the URL's scheme is one of Redis; any other is a database's."""
    return kind_of(url) == "redis"
