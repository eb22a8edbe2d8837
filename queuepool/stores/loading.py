"""Imports what the stores of a connection need before a pool forks."""

from __future__ import annotations

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores, is_redis


def load(settings: ConnectionSettings) -> None:
    """Import everything that the stores need, drivers included, so that forked processes share it. Opens nothing."""
    Stores(settings)
    controls = settings.control_url, settings.maintenance_url, settings.lock_url
    for url in (settings.url, settings.failed_url, *controls, settings.batches_url):
        if url and is_redis(url):
            from queuepool.stores.redis.scripts import load_all

            load_all()
        elif url:
            from queuepool.stores.sql.engines import load_driver

            load_driver(url)
