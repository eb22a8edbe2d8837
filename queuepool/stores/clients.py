"""The clients of one connection's stores: whose drivers they use, and how long they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of, scheme_of
from queuepool.stores.control import lock_prefix_of, prefix_of

if TYPE_CHECKING:
    from queuepool.stores.alerts import AlertKeys
    from queuepool.stores.history import History
    from queuepool.stores.locks import Locks
    from queuepool.stores.redis.client import Client as RedisClient
    from queuepool.stores.redis.keys import Keys
    from queuepool.stores.sql.client import Client as SqlClient

#: seconds after which a silent server counts as gone, for a loop; for a producer, a setting says
REPLY_TIMEOUT = 2.0
_LOOP_TIMEOUTS = {"redis": REPLY_TIMEOUT, "sql": 3.0}
#: the same for a person, who may ask for a count of millions
_PERSON_TIMEOUTS = {"redis": 7.0, "sql": 60.0}
#: how errors name a store of locks
_LOCKS = "lock store"
#: seconds that a producer waits while others write to its SQLite file, which does not queue writers
_LOCK_TIMEOUT = 60.0


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

    def redis(self, url: str, longest_wait: float = 0.0, store: str = "") -> RedisClient:
        """A client for the server at ``url``; errors name it by ``store``."""
        from queuepool.stores.redis.client import Client

        reply_timeout = self._timeout_of("redis")
        client = Client(url, longest_wait=longest_wait, shared=self._shared, reply_timeout=reply_timeout, store=store)
        self._clients.append(client)
        return client

    def sql(self, url: str, store: str = "") -> SqlClient:
        """A client for the database at ``url``; errors name it by ``store``."""
        from queuepool.stores.sql.client import Client
        from queuepool.stores.sql.tables import TableNames, tables_of

        create = self._settings.embedded and url == self._settings.url
        reply_timeout = self._timeout_of("sql")
        if self._shared and scheme_of(url) == "sqlite":
            reply_timeout = max(reply_timeout, _LOCK_TIMEOUT)
        tables = tables_of(TableNames.of(self._settings, url))
        about: dict[str, Any] = {"store": store, "tables": tables, "migrate": self._settings.migrate}
        client = Client(url, shared=self._shared, timeout=reply_timeout, create=create, **about)
        self._clients.append(client)
        return client

    def locks(self, url: str) -> Locks:
        """Laravel's unique locks in the store at ``url``."""
        if kind_of(url) == "redis":
            from queuepool.stores.redis.locks import RedisLocks

            return RedisLocks(self.redis(url, store=_LOCKS), keys_of(self._settings))
        from queuepool.stores.sql.locks import SqlLocks

        return SqlLocks(self.sql(url, _LOCKS), lock_prefix_of(self._settings, "sql"))

    def close(self) -> None:
        """Close all connections; the next verb would open them again."""
        for client in self._clients:
            client.close()

    def _timeout_of(self, kind: str) -> float:
        if self._reply_timeout or not self._shared:
            return self._reply_timeout or _LOOP_TIMEOUTS[kind]
        return max(self._settings.timeout, _PERSON_TIMEOUTS[kind]) if self._by_hand else self._settings.timeout


def load_drivers(settings: ConnectionSettings) -> None:
    """Import the drivers of all its stores, and read what is sent by them. Opens nothing."""
    controls = settings.control_url, settings.maintenance_url, settings.lock_url
    for url in (settings.url, settings.failed_url, *controls, settings.batches_url):
        if url and kind_of(url) == "redis":
            from queuepool.stores.redis.scripts import load_all

            load_all()
        elif url:
            from queuepool.stores.sql.engines import load_driver

            load_driver(url)


def keys_of(settings: ConnectionSettings) -> Keys:
    """The names of the keys in Redis."""
    from queuepool.stores.redis.keys import Keys

    return Keys(settings.prefix, lock_prefix_of(settings, "redis"))


def alert_keys(client: Any, settings: ConnectionSettings) -> AlertKeys:
    """The keys of alerts in the jobs' store, of which this is the client."""
    if kind_of(settings.url) == "redis":
        from queuepool.stores.redis.alerts import RedisAlerts

        return RedisAlerts(client, keys_of(settings))
    from queuepool.stores.sql.alerts import SqlAlerts
    from queuepool.stores.sql.locks import SqlLocks

    prefix = prefix_of(settings.restart_key)
    return SqlAlerts(client, SqlLocks(client, prefix), prefix)


def history(client: Any, settings: ConnectionSettings) -> History:
    """What the pools have kept of their past, in the jobs' store, of which this is the client."""
    if kind_of(settings.url) == "redis":
        from queuepool.stores.redis.history import RedisHistory

        return RedisHistory(client, keys_of(settings))
    from queuepool.stores.sql.history import SqlHistory

    return SqlHistory(client, prefix_of(settings.restart_key))
