"""Every flag that overrides a key of the configuration: its unit and its line of help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from queuepool.config.loader import FIELDS
from queuepool.config.settings import ConnectionSettings, PoolSettings


@dataclass(frozen=True, slots=True)
class Flag:
    """``unit`` is the metavar, empty for a yes or no; ``forms`` are its spellings where they are not the key's."""

    unit: str
    help: str
    forms: tuple[str, ...] = ()


FLAGS: Mapping[str, Flag] = MappingProxyType({
    "connection.url": Flag("URL", "Where the queue is: redis://HOST, sqlite:///FILE, postgresql://USER@HOST/DATABASE, mysql://..."),
    "connection.prefix": Flag("TEXT", "What stands before every key in Redis, as laravel_database_"),
    "pool.runtime_dir": Flag("DIR", "Where the pool's own directory lies"),
    "pool.workers": Flag("COUNT", "Number of workers, or auto: one for each CPU"),
    "pool.queue": Flag("QUEUE,...", "Serve these queues, the first one first"),
    "pool.modules": Flag("MODULE,...", "Import the jobs from these modules"),
    "pool.listeners": Flag("MODULE,...", "Import event listeners from these modules"),
    "pool.preload": Flag("", "Import the modules once, and share their memory", ("--preload/--no-preload",)),
    "pool.timeout": Flag("SECONDS", "Limit of a job's run time, 0 = no limit"),
    "pool.boot_timeout": Flag("SECONDS", "Limit of the time that the modules' import may take, 0 = no limit"),
    "pool.grace": Flag("SECONDS", "Kill a worker that is this long past its deadline"),
    "pool.tries": Flag("COUNT", "Number of tries of a job, 0 = no limit"),
    "pool.backoff": Flag("SECONDS,...", "Wait before the next try, or a list: 1,5,30"),
    "pool.max_crashes": Flag("COUNT", "Fail a job after this number of workers has died in it, 0 = no limit"),
    "pool.memory": Flag("MB", "Recycle a worker of this size after a job (+MB: above its size after boot), 0 = never"),
    "pool.memory_hard": Flag("MB", "Kill a worker of this size in its job, 0 = never"),
    "pool.sleep": Flag("SECONDS", "Wait between two looks where the store cannot block"),
    "pool.rest": Flag("SECONDS", "Rest after each job"),
    "pool.reserve_ahead": Flag("COUNT", "Number of jobs to reserve at once, 0 = auto: by how long they take"),
    "pool.max_jobs": Flag("COUNT", "Recycle a worker after this number of jobs, 0 = never"),
    "pool.max_time": Flag("SECONDS", "Recycle a worker after this time, 0 = never"),
    "pool.stop_timeout": Flag("SECONDS", "Longest wait of a stop for running jobs, 0 = as long as they may run"),
    "pool.give_up": Flag("SECONDS", "End with 1 when no worker or steward has come to work in this time, 0 = never"),
    "pool.force": Flag("", "Work on in maintenance mode", ("--force/--no-force",)),
    "pool.quiet": Flag("", "Log only what asks someone to act", ("-q", "--quiet")),
    "pool.verbose": Flag("", "Log every event", ("-v", "--verbose")),
    "pool.json": Flag("", "Log in JSON, one object on each line", ("--json",)),
    "pool.log": Flag("FILE", "Log to this file, else to standard error"),
    "pool.log_level": Flag("LEVEL", "Log the application's own messages from this level on: debug, info, warning ..."),
})  # fmt: skip

CONNECTION = ("connection.url", "connection.prefix")
PLACE = (*CONNECTION, "pool.runtime_dir")
#: a pool has them all, a lone worker those that are not for its master
POOL = tuple(FLAGS)
_MASTERS = (
    "workers", "preload", "boot_timeout", "grace", "max_crashes", "memory_hard", "stop_timeout", "give_up",
    "runtime_dir",
)  # fmt: skip
WORKER = tuple(key for key in FLAGS if key.partition(".")[2] not in _MASTERS)


def default_of(key: str) -> str:
    """As one would write it; empty when there is none."""
    section, _, name = key.partition(".")
    settings = PoolSettings() if section == "pool" else ConnectionSettings()
    assert FIELDS.get(name, name) in {field.name for field in fields(settings)}
    value = getattr(settings, FIELDS.get(name, name))
    if isinstance(value, tuple):
        return ",".join(f"{part:g}" if isinstance(part, float) else part for part in value)
    return f"{value:g}" if isinstance(value, (int, float)) else str(value or "")
