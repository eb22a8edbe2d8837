"""The stores to choose from; a driver is imported only for the chosen one."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.stores.base import Store

NAMES = ("redis", "sqlite", "postgres", "mariadb")


def store_named(name: str, folder: Path, password: str, hosts: int = 1) -> Store:
    """Nothing of it runs yet. ``password`` is a secret that must not be seen anywhere."""
    if hosts > 1:
        from tests.chaos.hosts import are_allowed
        from tests.chaos.stores.redis_hosts import RedisBehindProxies, RedisOnAHost

        return (RedisOnAHost if are_allowed() else RedisBehindProxies)(folder, password)
    if name == "redis":
        from tests.chaos.stores.redis import RedisStore

        return RedisStore(folder, password)
    if name == "sqlite":
        from tests.chaos.stores.sqlite import SqliteStore

        return SqliteStore(folder, password)
    from tests.chaos.stores.database import DatabaseStore
    from tests.chaos.stores.words import MARIADB, POSTGRES
    from tests.support.databases import MariaDB, Postgres

    brand, words = (Postgres, POSTGRES) if name == "postgres" else (MariaDB, MARIADB)
    return DatabaseStore(brand, words, folder, password)
