"""What is checked before a pool or a lone worker starts: the server, its files, the address, the schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

from queuepool.config.connections import is_spread, urls_of
from queuepool.config.settings import ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.config.urls import database_of, kind_of, scheme_of
from queuepool.config.values import address_of
from queuepool.errors import ConfigError, NeedsOneSlot, StoreError, StoreUnfit
from queuepool.jobs.registry import REGISTRY, limited
from queuepool.stores.factory import Stores


def refuse_unfit(settings: ConnectionSettings, queue: str) -> None:
    """Raise ``StoreUnfit`` when the server is unsuitable; one that does not answer passes."""
    with closing(Stores(settings)) as stores, _waiting_for_the_store():
        stores.examine(queue)


def refuse_missing_loop(pool: PoolSettings) -> None:
    """Raise ``ConfigError`` when the package of the pool's event loop is not installed."""
    if problem := problem_of_loop(pool):
        raise ConfigError(f"pool {pool.name}: loop", problem)


def problem_of_loop(pool: PoolSettings) -> str:
    """What keeps this pool's workers from having their event loop; empty if nothing does."""
    is_there = pool.loop == "asyncio" or find_spec(pool.loop)
    return "" if is_there else f"{pool.loop} needs pip install 'queuepool-worker[{pool.loop}]'"


def problem_of_limits(pool: PoolSettings) -> str:
    """Which limits, as far as the imported modules show, this pool's workers cannot keep; empty if there are none.

    Those of jobs in several slots of a cluster: one step could not count who holds their places.
    """
    if not is_spread(pool.connection):
        return ""
    if name := limited(REGISTRY, pool.queues):
        return f"job {name}: {NeedsOneSlot('a job with limits')}"
    return f"limits: {NeedsOneSlot('the limit of a queue')}" if pool.limits else ""


def make_missing_files(settings: ConnectionSettings) -> list[str]:
    """Make SQLite's files that the settings name, with their tables; returns the paths of those made.

    Only at a start: a file that is missing later is being replaced, or was removed on purpose. A file whose directory
    is missing is waited for, as a server is. Raises ``StoreUnfit`` for a directory that cannot be written to. The
    default file is made by the first process that needs it.
    """
    if {kind_of(url) for url in urls_of(settings).values()} == {"redis"}:
        return []
    from queuepool.stores.sql.migrate import client_at, migrate, places_of  # imported here: Redis does without

    made = []
    for (url, names), tables in places_of([settings]).items():
        path, is_default = database_of(url), settings.embedded and url == settings.url
        if scheme_of(url) == "sqlite" and Path(path).parent.is_dir() and not (is_default or Path(path).exists()):
            with closing(client_at(url, names)) as client, _waiting_for_the_store():
                migrate(client, tables)
                made.append(path)
    return made


def refuse_unbindable(settings: PoolSettings) -> None:
    """Raise ``ConfigError`` when nothing can listen on the address of ``listen``."""
    if not settings.listen:
        return
    from queuepool.metrics.server import problem_of  # imported here: few pools have an address

    if problem := problem_of(address_of(settings.listen)):
        raise ConfigError(f"pool {settings.name}: listen", f"{settings.listen}: {problem}")


def refuse_unsendable(schedules: Sequence[ScheduleSettings]) -> None:
    """Raise ``ConfigError`` when a schedule's data cannot be that of a job: it would crash the steward."""
    if schedules:
        from queuepool.steward.schedule import ScheduledJob  # imported here: few pools have schedules

        for one in schedules:
            ScheduledJob(one)


@contextmanager
def _waiting_for_the_store() -> Iterator[None]:
    """Ignore that a store does not answer now, since the pool will wait for it, but not that it is unfit."""
    try:
        yield
    except StoreUnfit:
        raise
    except StoreError:
        return
