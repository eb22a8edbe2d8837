"""What a pool's processes import late, imported before the first fork: they share it, and may outlive its files.

An installation is removed under a running pool by whoever prunes old releases. A steward or a worker that is replaced
after that must not need one more file of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.stores.factory import Stores, is_redis, load_drivers

#: of every pool
_USUAL = (
    "jobs.asynchronous", "jobs.decorator", "jobs.dispatch", "jobs.job_class", "jobs.job_schedules", "jobs.queued",
    "jobs.within", "payload.scheduled", "payload.php_serialize", "payload.php_unserialize", "steward.schedule",
    "unix.posix_timer",
)  # fmt: skip


def load_all(settings: PoolSettings) -> None:
    """Import it, and read the scripts of the stores. Opens nothing."""
    Stores(settings.connection)  # which imports its parts
    load_drivers(settings.connection)
    for name in (*_USUAL, *_of_settings(settings), *_of_stores(settings.connection)):
        import_module(f"queuepool.{name}")


def _of_settings(settings: PoolSettings) -> Iterator[str]:
    if settings.alerts:
        yield "alerts.watch"
    if settings.listen:
        yield "pool.web_process"
    if settings.has_neighbours:
        yield "log.eyes"  # a parent's first line may come late
    if settings.connection.app_keys:
        yield "payload.aes"


def _of_stores(connection: ConnectionSettings) -> Iterator[str]:
    if not is_redis(connection.batches_url or connection.failed_url or connection.url):
        yield "stores.sql.batches"
