"""Every flag that overrides a configuration key: its unit and its help text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from queuepool.config.loader import FIELDS
from queuepool.config.settings import ConnectionSettings, PoolSettings


@dataclass(frozen=True, slots=True)
class Flag:
    """``unit`` is the metavar, empty for a switch; ``forms`` are its spellings if they differ from the key's."""

    unit: str
    help: str
    forms: tuple[str, ...] = ()


FLAGS: Mapping[str, Flag] = MappingProxyType({
    "connection.url": Flag("URL", "URL of the queue: redis://HOST, sqlite:///FILE, postgresql://USER@HOST/DATABASE, mysql://..."),
    "connection.prefix": Flag("TEXT", "Prefix of every key in Redis, such as laravel_database_"),
    "pool.runtime_dir": Flag("DIR", "Directory in which the pool makes its own directory"),
    "pool.workers": Flag("COUNT", "Number of workers; auto = one per CPU"),
    "pool.queue": Flag("QUEUE,...", "Queues to serve, in strict order of priority"),
    "pool.modules": Flag("MODULE,...", "Modules to import jobs from"),
    "pool.listeners": Flag("MODULE,...", "Modules to import event listeners from"),
    "pool.preload": Flag("", "Import the modules once; workers share their memory", ("--preload/--no-preload",)),
    "pool.reload": Flag("", "Replace workers whose files change, for development", ("--reload/--no-reload",)),
    "pool.timeout": Flag("SECONDS", "Job timeout; 0 disables it"),
    "pool.soft_timeout": Flag("SECONDS", "Time after which a job gets SoftTimeout, before its timeout; 0 = never"),
    "pool.boot_timeout": Flag("SECONDS", "Timeout for importing the modules; 0 disables it"),
    "pool.grace": Flag("SECONDS", "Grace period before an overdue worker is killed"),
    "pool.tries": Flag("COUNT", "Number of tries per job; 0 = no limit"),
    "pool.backoff": Flag("SECONDS,...", "Delay before the next try, or a list of delays: 1,5,30"),
    "pool.unknown_retry": Flag("SECONDS", "Delay before a job that the code does not know is tried again; 0 = fail it"),
    "pool.max_crashes": Flag("COUNT", "Fail a job after this many workers have died running it; 0 = no limit"),
    "pool.track": Flag("SECONDS", "How long to keep each job's state after its end; 0 = only for jobs with their own"),
    "pool.memory": Flag("MB", "Recycle a worker of this size after its job (+MB: above its boot size); 0 = never"),
    "pool.memory_hard": Flag("MB", "Kill a worker of this size during its job; 0 = never"),
    "pool.sleep": Flag("SECONDS", "Polling interval where the store cannot block"),
    "pool.rest": Flag("SECONDS", "Pause after each job"),
    "pool.reserve_ahead": Flag("COUNT", "Number of jobs to reserve at once; 0 = auto, by how long they take"),
    "pool.max_jobs": Flag("COUNT", "Recycle a worker after this many jobs; 0 = never"),
    "pool.max_time": Flag("SECONDS", "Recycle a worker after this time; 0 = never"),
    "pool.stop_timeout": Flag("SECONDS", "Longest wait for running jobs at a stop; 0 = as long as they may run"),
    "pool.give_up": Flag("SECONDS", "Exit with 1 if no worker or no steward starts working in this time; 0 = never"),
    "pool.force": Flag("", "Keep working in maintenance mode", ("--force/--no-force",)),
    "pool.quiet": Flag("", "Log only what needs action", ("-q", "--quiet")),
    "pool.verbose": Flag("", "Log every event", ("-v", "--verbose")),
    "pool.json": Flag("", "Log in JSON, one object per line", ("--json",)),
    "pool.history": Flag("TIME", "Keep counters in the store for `queuepool history`: 35d, 24h; 0 = not at all"),
    "pool.metrics": Flag("", "Count attempts and measure queues", ("--metrics/--no-metrics",)),
    "pool.listen": Flag("ADDRESS", "Serve metrics and health over HTTP at HOST:PORT or unix:/PATH"),
    "pool.log": Flag("FILE", "Log to this file instead of standard error"),
    "pool.log_level": Flag("LEVEL", "Log the application's own messages from this level up: debug, info, warning ..."),
})  # fmt: skip

_DAY = 86400.0
CONNECTION = ("connection.url", "connection.prefix")
PLACE = (*CONNECTION, "pool.runtime_dir")
#: a pool takes them all, a lone worker those that do not concern a master
POOL = tuple(FLAGS)
_MASTERS = (
    "workers", "preload", "reload", "boot_timeout", "grace", "max_crashes", "memory_hard", "stop_timeout", "give_up",
    "runtime_dir", "listen", "history",
)  # fmt: skip
WORKER = tuple(key for key in FLAGS if key.partition(".")[2] not in _MASTERS)


def default_of(key: str) -> str:
    """The key's default as a user would write it; empty if there is none."""
    section, _, name = key.partition(".")
    settings = PoolSettings() if section == "pool" else ConnectionSettings()
    assert FIELDS.get(name, name) in {field.name for field in fields(settings)}
    value = getattr(settings, FIELDS.get(name, name))
    if isinstance(value, tuple):
        return ",".join(f"{part:g}" if isinstance(part, float) else part for part in value)
    if isinstance(value, float) and value and not value % _DAY:
        return f"{value / _DAY:g}d"
    return f"{value:g}" if isinstance(value, (int, float)) else str(value or "")
