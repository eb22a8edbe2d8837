"""A parsed configuration: plain settings with their defaults and units."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queuepool.config.alert_settings import AlertSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """A ``[connection]`` section: where the queue is and how long a lease lasts."""

    name: str = "default"
    #: its scheme determines the kind of store
    url: str = field(default="sqlite:///queuepool.db", repr=False)
    #: whether ``url`` is our default SQLite file, which is created with its tables if it is missing
    embedded: bool = False
    #: the command that makes the tables, as somebody would type it; holds no secret
    migrate: str = field(default="queuepool migrate", compare=False)
    prefix: str = ""
    #: seconds that a lease lasts
    retry_after: float = 90.0
    #: seconds that one wait for a job may block
    block_for: float = 5.0
    #: seconds that a producer waits for a server that does not answer
    timeout: float = 2.0
    #: whether the steward renews the leases of running jobs
    renew: bool = True
    #: where failed jobs are recorded: ``redis``, ``sql``, ``null`` (nowhere) or, when empty, by the kind of the URL
    failed: str = ""
    #: where failed jobs are recorded, if not at ``url``
    failed_url: str = field(default="", repr=False)
    #: the full key of the restart timestamp, Laravel's cache prefix included
    restart_key: str = "illuminate:queue:restart"
    #: where the control keys live, if not at ``url``
    control_url: str = field(default="", repr=False)
    #: the full key of Laravel's maintenance mode; empty: beside the restart timestamp's, with the same prefix
    maintenance_key: str = ""
    #: where that key lives, if not at ``control_url``
    maintenance_url: str = field(default="", repr=False)
    #: where Laravel's cache keeps its locks; empty: at ``url``, or at ``control_url`` where that is of the other kind
    lock_url: str = field(default="", repr=False)
    #: ``off``, ``accept`` (unsigned payloads pass) or ``require``
    signing: str = "off"
    #: the queue by which Laravel learns how its jobs ended here; empty = it does not
    outcomes: str = ""
    #: the PHP class that is called for them
    outcome_class: str = "App\\Queue\\QueuepoolOutcome"
    #: whether Laravel also learns of failures that only its job's own ``failed()`` is called for
    php_failed: bool = False
    #: ``refuse`` or ``ignore`` chains, batches and middleware of object jobs that cannot be carried out
    foreign: str = "refuse"
    #: the database with ``job_batches``; empty = as ``failed_url``, else ``url``
    batches_url: str = field(default="", repr=False)
    #: the names of Laravel's tables, where a store is a database
    jobs_table: str = "jobs"
    failed_table: str = "failed_jobs"
    cache_table: str = "cache"
    lock_table: str = "cache_locks"
    batches_table: str = "job_batches"
    #: PostgreSQL's schema that they are in; empty = the first of the ``search_path``
    schema: str = ""
    #: (name, secret): the first signs, all verify
    signing_keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    #: Laravel's key, for encrypted jobs; empty = none
    app_key: bytes = field(default=b"", repr=False)
    #: keys that Laravel had before; they only decrypt
    previous_keys: tuple[bytes, ...] = field(default=(), repr=False)
    #: Laravel's ``app.cipher``
    cipher: str = "AES-256-CBC"

    @property
    def app_keys(self) -> tuple[bytes, ...]:
        """The keys for encrypted jobs: the first encrypts, all decrypt; none without ``app_key``."""
        return (self.app_key, *self.previous_keys) if self.app_key else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """A ``[schedule:NAME]`` section: which job is pushed, and when; times in seconds."""

    name: str
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    #: one of these is set: five fields, or the interval
    cron: str = ""
    every: int = 0
    #: one of these is set: the name of a job, or a PHP class
    job: str = ""
    object: str = ""
    #: the job's arguments, or the object's properties, as JSON; empty = none
    data: str = ""
    queue: str = "default"
    timezone: str = "UTC"
    #: how late a missed time may be made good
    late: float = 86400.0
    #: whether a job may be pushed while the last one is queued or runs
    overlap: bool = True

    @property
    def pushes(self) -> str:
        """The name of the job as people know it."""
        return self.job or self.object

    @property
    def rule(self) -> str:
        """When it is due, in words."""
        return f"{self.cron} {self.timezone}" if self.cron else f"every {self.every} s"


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A worker's limit in resident MB: in total, or above its size once its modules are imported; 0 = no limit."""

    megabytes: float
    is_above_boot: bool = False

    def __str__(self) -> str:
        return f"{'+' * self.is_above_boot}{self.megabytes:.10g}"

    def total(self, booted: float) -> float:
        """The limit in MB for a worker that has ``booted`` MB after its boot; 0 = no limit."""
        return self.megabytes + booted if self.megabytes and self.is_above_boot else self.megabytes

    def is_too_small(self, booted: float) -> bool:
        """Whether a worker that has ``booted`` MB after its boot reaches the limit before its first job."""
        return 0 < self.total(booted) <= booted


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """A ``[pool]`` section; times in seconds, memory in MB, 0 = no limit unless said otherwise."""

    name: str = "default"
    #: the file that describes it; not compared, since it is the same pool wherever the file is read from
    config: Path | None = field(default=None, compare=False)
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    queues: tuple[str, ...] = ("default",)
    #: those on its connection, for its steward
    schedules: tuple[ScheduleSettings, ...] = ()
    #: the defaults of the schedules that jobs declare; None = its steward pushes none of these
    job_schedules: ScheduleSettings | None = field(default=None, compare=False)
    #: None = its steward raises no alerts
    alerts: AlertSettings | None = field(default=None, compare=False)
    workers: int = 4
    modules: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()
    #: a template imports the modules once and forks the workers, which share its memory
    preload: bool = False
    #: replace the workers when a file of the application's changes
    reload: bool = False
    timeout: float = 60.0
    #: seconds after which a handler gets ``SoftTimeout``; 0 = never
    soft_timeout: float = 0.0
    #: seconds that a worker may take to import its modules; 0 = no limit
    boot_timeout: float = 60.0
    #: seconds past its deadline after which the master kills a worker that the kernel's alarm did not kill
    grace: float = 1.0
    tries: int = 1
    backoff: tuple[float, ...] = (0.0,)
    #: seconds until a job that a worker's code does not know is tried again, doubled each time; 0 = it fails at once
    unknown_retry: float = 30.0
    max_crashes: int = 3
    #: seconds that the state of each job is kept after its end; 0 = only of those that ask for it
    track: float = 0.0
    memory: MemoryLimit = MemoryLimit(128.0, is_above_boot=True)
    #: resident MB at which the master kills a worker, even in mid-job; 0 = never
    memory_hard: float = 0.0
    sleep: float = 3.0
    rest: float = 0.0
    max_jobs: int = 0
    #: jobs that a worker reserves at once; 0 = auto: as many as it is likely to run in 5 ms
    reserve_ahead: int = 0
    max_time: float = 0.0
    #: whether to keep working in maintenance mode
    force: bool = False
    #: seconds that a stop waits for running jobs; 0 = as long as their timeouts allow
    stop_timeout: float = 0.0
    #: seconds of failures without a ready worker (or steward) after which the pool exits with 1; 0 = never
    give_up: float = 300.0
    #: whether to count attempts and measure the queues
    metrics: bool = True
    #: log only warnings and worse
    quiet: bool = False
    #: log every event
    verbose: bool = False
    #: log JSON objects; the amount stays the same
    json: bool = False
    #: the lowest level at which the application's own messages are logged
    log_level: str = "info"
    #: whether other pools are started with it, so that lines on a terminal name theirs; no key says so
    has_neighbours: bool = field(default=False, compare=False)
    #: the log file; None = standard error
    log: Path | None = None
    #: seconds for which the pool's counters are kept in the store; 0 = not at all
    history: float = 35 * 86400.0
    #: the address at which a web process serves metrics and health; empty = there is none
    listen: str = ""
    #: where the pool's own directory (pidfile, board) lies; None = chosen by user and pool name
    runtime_dir: Path | None = None
