"""A look at the server and the schedules before a pool or a lone worker starts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from queuepool.config.addresses import address_of
from queuepool.config.settings import ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.errors import ConfigError, StoreError, StoreUnfit
from queuepool.stores.factory import Stores


def refuse_unfit(settings: ConnectionSettings, queue: str) -> None:
    """Raise ``StoreUnfit`` when the server is unsuitable; one that does not answer passes."""
    with closing(Stores(settings)) as stores:
        try:
            stores.examine(queue)
        except StoreUnfit:
            raise
        except StoreError:
            return


def refuse_unbindable(settings: PoolSettings) -> None:
    """Raise ``ConfigError`` when nothing can listen on the address of ``listen``."""
    if not settings.listen:
        return
    from queuepool.metrics.listener import problem_of  # imported here: few pools have an address

    if problem := problem_of(address_of(settings.listen)):
        raise ConfigError(f"pool {settings.name}: listen", f"{settings.listen}: {problem}")


def refuse_unsendable(schedules: Sequence[ScheduleSettings]) -> None:
    """Raise ``ConfigError`` when the data of a schedule cannot be a job's: its steward would die of it."""
    if schedules:
        from queuepool.steward.scheduled_job import ScheduledJob  # imported here: few pools have schedules

        for one in schedules:
            ScheduledJob(one)
