"""The schedules that jobs declare: those of the pools that run here; of the others, their modules are imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout

from queuepool.board.job_schedules import JobSchedule, published
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings, ScheduleSettings
from queuepool.errors import ConfigError, NotRunning
from queuepool.pool.announce import job_schedules
from queuepool.steward.schedules_of_pool import declared
from queuepool.worker.boot import import_application


def declared_schedules(pools: Sequence[PoolSettings], *, anew: bool) -> Iterator[ScheduleSettings]:
    """The schedules of the pools' jobs; ``anew``: import the modules of pools that run, too. Raises ``BootFailure``."""
    at_rest = []
    for pool in pools:
        found = None if anew else _in_force(pool)
        if found is None:
            at_rest.append(pool)
        else:
            yield from declared(pool, found)
    with redirect_stdout(sys.stderr):  # what modules print is no part of the answer
        import_application(dict.fromkeys(name for pool in at_rest for name in pool.modules))
    for pool in at_rest:
        yield from declared(pool, job_schedules())


def _in_force(pool: PoolSettings) -> list[JobSchedule] | None:
    """What the local pool's workers have declared; ``None`` if it does not run."""
    try:
        return published(RuntimeDir(pool).board())
    except (NotRunning, ConfigError):
        return None
