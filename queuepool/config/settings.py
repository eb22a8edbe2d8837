"""A parsed configuration: plain settings, each with its default, its text and its parser. See ``setting``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from queuepool.config import secrets, timetable, values
from queuepool.config.alerts import AlertSettings
from queuepool.config.pool_queues import queue_limits, served_queues
from queuepool.config.setting import Setting, linked, setting, settings_of
from queuepool.config.values import MemoryLimit, MemoryReserve, one_of, optional
from queuepool.config.web import WebSettings

#: the parser of the URL of a store that may be elsewhere
_other_url = optional(secrets.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """A ``[connection]`` section: where the queue is and how long a lease lasts. Times in seconds."""

    name: str = "default"
    #: whether ``url`` is our default SQLite file, which is created with its tables if it is missing
    embedded: bool = False
    #: the command that creates the tables, as a user would type it; holds no secret
    migrate: str = field(default="queuepool migrate", compare=False)
    #: The kind of store: redis (without a url: redis://127.0.0.1:6379/0) or sql; empty = chosen by the url.
    driver: str = setting("", optional(one_of("redis", "sql")), is_compared=False)  # the url says it already
    #: URL of the queue. In a password write @ / ? as %40 %2F %3F.
    #:   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], unix:///PATH[?db=DATABASE], or rediss:// for TLS:
    #:     ?ssl_ca_certs=FILE where the system does not know the CA, &ssl_certfile=FILE and &ssl_keyfile=FILE for a
    #:     client certificate; the server's is always verified. Valkey is reached as Redis is.
    #:   redis+cluster://HOST,HOST or redis+sentinel://HOST,HOST/NAME[/DATABASE], or rediss+...: docs/stores.md
    #:   sqlite:///PATH of a file, relative to this file unless it begins with a fourth /; in the environment, as a flag
    #:     and in Python relative to the working directory
    #:   postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE, or by socket postgresql://USER@/DATABASE?host=/DIRECTORY;
    #:     TLS: ?sslmode=verify-full, &sslrootcert=FILE (of the CA), &sslcert=FILE and &sslkey=FILE
    #:     other options of libpq: target_session_attrs, keepalives_idle, tcp_user_timeout, application_name ...
    #:     A pooler (PgBouncer, not in statement mode) is detected; for one that is not: ?prepare_threshold=none
    #:   mysql:// or mariadb://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE, or by socket ...@/DATABASE?unix_socket=/PATH;
    #:     TLS: ?ssl_ca=FILE, &ssl_cert=FILE and &ssl_key=FILE
    #:   postgres:// and SQLAlchemy's postgresql+psycopg://, mysql+pymysql:// and so on name the same databases.
    #: A database needs Laravel's tables: `queuepool migrate` creates them. The default's file lies beside this file
    #: (without one, in the working directory) and is created with its tables if it is missing.
    url: str = setting(
        "sqlite:///queuepool.db",
        secrets.url,
        "URL",
        "URL of the queue: redis://HOST, sqlite:///FILE, postgresql://USER@HOST/DATABASE, mysql://...",
        is_secret=True,
    )
    #: Prefix of every key in Redis; Laravel's is laravel_database_ or laravel-database-. On a cluster: docs/stores.md
    prefix: str = setting("", values.text, "TEXT", "Prefix of every key in Redis, such as laravel_database_")
    #: Seconds that a lease lasts.
    retry_after: float = setting(90.0, values.some_seconds)
    #: Seconds that one wait for a job may block.
    block_for: float = setting(5.0, values.some_seconds)
    #: Seconds that a push, or another call from Python, waits for a silent server; for writers of SQLite up to 60 s.
    timeout: float = setting(2.0, values.some_seconds)
    #: Replicas of Redis that must have each push, reserve and settlement before it counts: a number, or all; 0 = none.
    wait_replicas: str = setting("", values.replicas, written="0")
    #: Does the steward renew the leases of running jobs? If not, timeout + grace must be below retry_after.
    renew: bool = setting(True, values.boolean)
    #: How failed jobs are recorded: redis, sql (Laravel's failed_jobs), null = not at all, empty = like the queue.
    failed: str = setting("", optional(one_of("redis", "sql", "null")))
    #: URL of the failed jobs' store, empty = url; Laravel on Redis often has failed_jobs in its database.
    failed_url: str = setting("", _other_url, is_secret=True)
    #: Key of the restart timestamp, including Laravel's cache prefix; on a cluster the default begins with prefix.
    restart_key: str = setting("illuminate:queue:restart", values.some_text)
    #: URL of that key's store, empty = url; Laravel's cache is usually in Redis' database 1, or in its database.
    control_url: str = setting("", _other_url, is_secret=True)
    #: Key of Laravel's maintenance mode (APP_MAINTENANCE_DRIVER=cache), including the prefix of its cache; empty =
    #: illuminate:foundation:down with the prefix of restart_key.
    maintenance_key: str = setting("", values.text)
    #: URL of that key's store, empty = control_url; needed where APP_MAINTENANCE_STORE is not the default cache.
    maintenance_url: str = setting("", _other_url, is_secret=True)
    #: URL of the store with the locks of Laravel's cache (lock_connection of its store in config/cache.php), for unique
    #: jobs; empty = url, or control_url where that is of the other kind.
    lock_url: str = setting("", _other_url, is_secret=True)
    #: Queue by which a Laravel application learns how its jobs ended here, so that it goes on with their chains and
    #: batches (docs/laravel.md); a worker of Laravel must serve it. Empty = Laravel is not told.
    outcomes: str = setting("", optional(values.queue))
    #: The PHP class that Laravel calls for them.
    outcome_class: str = setting("App\\Queue\\QueuepoolOutcome", values.php_class)
    #: Queue by which Laravel's workers report the ends of members of flows in PHP (docs/flows.md); a pool must serve
    #: it, and no worker of Laravel. Empty = a flow with such members is refused.
    flow_reports: str = setting("", optional(values.queue))
    #: Is Laravel also told of failures for which it only calls the job's own failed()?
    php_failed: bool = setting(False, values.boolean)
    #: Object jobs with a chain, a batch or middleware that cannot be carried out: refuse = they fail before they begin,
    #: ignore = they run, and that part is dropped.
    foreign: str = setting("refuse", one_of("refuse", "ignore"))
    #: URL of the database with Laravel's job_batches, empty = failed_url, else url.
    batches_url: str = setting("", _other_url, is_secret=True)
    #: Laravel's tables, if they have other names there: `table` of the connection in config/queue.php, with the
    #: database's `prefix`.
    jobs_table: str = setting("jobs", values.table)
    #: `failed.table` in config/queue.php.
    failed_table: str = setting("failed_jobs", values.table)
    #: `table` of the store in config/cache.php: restart, pauses, maintenance and tallies are in it.
    cache_table: str = setting("cache", values.table)
    #: `lock_table` of that store: the locks of unique jobs.
    lock_table: str = setting("cache_locks", values.table)
    #: `batching.table` in config/queue.php.
    batches_table: str = setting("job_batches", values.table)
    #: The schema that all these tables are in, in PostgreSQL; empty = the first of the search_path.
    schema: str = setting("", values.schema)
    #: Signed payloads (docs/signing.md): off; accept = refuse wrong signatures, allow unsigned payloads; require =
    #: refuse both. Pushes are signed unless this is off.
    signing: str = setting("off", one_of("off", "accept", "require"))
    #: NAME:SECRET, separated by commas: the first signs, all verify; or /PATH of a file with one per line. A secret has
    #: at least 16 characters: openssl rand -hex 32. Better set in QUEUEPOOL_CONNECTION_SIGNING_KEYS.
    signing_keys: tuple[tuple[str, str], ...] = setting((), secrets.signing_keys, is_secret=True)  # name, secret
    #: Laravel's APP_KEY, base64:..., for encrypted jobs (ShouldBeEncrypted, or encrypted = True in Python); or /PATH of
    #: a file that holds it. Without it encrypted jobs fail, and can be retried once it is set. Needs the extra
    #: `encrypted`. Better set in QUEUEPOOL_CONNECTION_APP_KEY, or written ${APP_KEY}.
    app_key: bytes = setting(b"", secrets.app_key, is_secret=True)
    #: Laravel's APP_PREVIOUS_KEYS, separated by commas, or /PATH of a file with one per line; they only decrypt.
    previous_keys: tuple[bytes, ...] = setting((), secrets.previous_keys, is_secret=True)
    #: Laravel's app.cipher: AES-256-CBC, AES-128-CBC, AES-256-GCM or AES-128-GCM.
    cipher: str = setting("AES-256-CBC", secrets.cipher)

    @property
    def app_keys(self) -> tuple[bytes, ...]:
        """The keys for encrypted jobs: the first encrypts, all decrypt; none without ``app_key``."""
        return (self.app_key, *self.previous_keys) if self.app_key else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """A ``[schedule:NAME]`` section: which job is pushed, and when; times in seconds."""

    name: str
    #: Time zone of cron, by its name: Europe/Berlin.
    timezone: str = setting("UTC", timetable.time_zone)
    #: How late a missed due time may still be pushed. If several were missed, only the latest is. 0 = within 10 seconds
    #: only.
    late: float = setting(86400.0, values.seconds, written="24h")
    #: The [connection:NAME] whose store the job is pushed to, which the pools on it do.
    connection: ConnectionSettings = linked(ConnectionSettings, values.section_name, "default")
    #: Queue of the job.
    queue: str = setting("default", values.queue)
    #: May the job be pushed while the last one is queued or running?
    overlap: bool = setting(True, values.boolean)
    #: When it is due, minute, hour, day of the month, month, day of the week: 0 3 * * * is daily at 03:00. In
    #: [schedule:NAME] only, and either this or every.
    cron: str = setting("", timetable.cron)
    #: Or the interval, in whole seconds from 1 up; the same on all hosts, as it begins with the Unix epoch.
    every: int = setting(0, timetable.interval, written="")
    #: Name of the job, as a module registers it. In [schedule:NAME] only, and either this or object.
    job: str = setting("", values.job_name)
    #: Or a PHP class: the job is pushed as Laravel pushes its objects.
    object: str = setting("", optional(values.php_class))
    #: The job's arguments as JSON, or the object's properties: {"kind": "daily"}.
    data: str = setting("", values.data)

    @property
    def pushes(self) -> str:
        """The name of the job as people know it."""
        return self.job or self.object

    @property
    def rule(self) -> str:
        """When it is due, in words."""
        return f"{self.cron} {self.timezone}" if self.cron else f"every {self.every} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """A ``[pool]`` section; times in seconds, memory in MB, 0 = no limit unless said otherwise."""

    name: str = "default"
    #: the file that describes it; not compared, since it is the same pool wherever the file is read from
    config: Path | None = field(default=None, compare=False)
    #: those on its connection, for its steward
    schedules: tuple[ScheduleSettings, ...] = ()
    #: the defaults of the schedules that jobs declare; None = its steward pushes none of these
    job_schedules: ScheduleSettings | None = field(default=None, compare=False)
    #: None = its steward raises no alerts
    alerts: AlertSettings | None = field(default=None, compare=False)
    #: whether other pools are started with it, so that lines on a terminal name theirs
    has_neighbours: bool = field(default=False, compare=False)
    #: The [connection:NAME] to use; plain [connection] is `default`.
    connection: ConnectionSettings = linked(ConnectionSettings, values.section_name, "default")
    #: Queues, separated by commas, in strict order of priority; or each with a weight, 1 to 100, by which they share
    #: the workers while all of them have jobs: high*6,default*3,low*1.
    queues: tuple[str, ...] = setting(
        ("default",), served_queues, "QUEUE,...", "Queues to serve, in strict order or QUEUE*WEIGHT", key="queue"
    )
    #: those of the queues; empty = strict order
    weights: tuple[int, ...] = ()
    #: Worker processes, 1 to 1024, or auto = one per CPU.
    workers: int = setting(4, values.workers, "COUNT", "Number of workers; auto = one per CPU", is_masters=True)
    #: Fewest and most workers, 1 to 1024; empty = as many as `workers`. With one of them the pool scales by itself
    #: between the two: it begins with `workers`, and then has as many as its jobs need (docs/operations.md).
    min_workers: int = setting(
        0, values.bound, "COUNT", "Fewest workers of a pool that scales by itself", written="", is_masters=True
    )
    #: See min_workers.
    max_workers: int = setting(
        0, values.bound, "COUNT", "Most workers of a pool that scales by itself", written="", is_masters=True
    )
    #: Seconds in which it is to work off what waits; jobs that take longer than this get a worker each.
    target_wait: float = setting(
        10.0, values.some_seconds, "SECONDS", "Time in which a pool that scales works off what waits", is_masters=True
    )
    #: Seconds for which fewer workers must have been enough before it has fewer.
    scale_down_after: float = setting(
        60.0, values.some_seconds, "SECONDS", "Time for which fewer workers must have been enough", is_masters=True
    )
    #: Memory that it leaves free when it adds workers, in MB or as a share of the memory of the host, or of the control
    #: group that limits it; 0 = none.
    memory_reserve: MemoryReserve = setting(
        MemoryReserve(10.0, is_share=True),
        values.memory_reserve,
        "MB",
        "Memory to leave free when workers are added, in MB or as a share: 512, 1G, 10%",
        is_masters=True,
    )
    #: Jobs that each worker runs at once, 1 to 1000: coroutines on its event loop.
    concurrency: int = setting(
        1, values.concurrency, "COUNT", "Number of jobs that each worker runs at once", is_masters=True
    )
    #: The event loop that they share: asyncio, or uvloop, which must be installed.
    loop: str = setting(
        "asyncio", one_of("asyncio", "uvloop"), "NAME", "Event loop of workers that run many jobs", is_masters=True
    )
    #: Most jobs of a queue that run at a time, over all hosts, separated by commas: emails:20, imports:2
    #: (docs/limits.md). All pools that serve the queue must have it.
    limits: tuple[tuple[str, int], ...] = setting(
        (), queue_limits, "QUEUE:COUNT,...", "Most jobs of a queue that run at a time, over all hosts"
    )
    #: Python modules with jobs, separated by commas. Every worker imports them after the fork; with preload, the
    #: template imports them once.
    modules: tuple[str, ...] = setting((), values.modules, "MODULE,...", "Modules to import jobs from")
    #: Python modules with event listeners, separated by commas, imported in the same way.
    listeners: tuple[str, ...] = setting((), values.modules, "MODULE,...", "Modules to import event listeners from")
    #: Import the modules once, in a template process that forks the workers, so that they share its memory and start at
    #: once? Recycled workers then run the same code; new code needs a restart.
    preload: bool = setting(
        False, values.boolean, help="Import the modules once; workers share their memory", is_masters=True
    )
    #: Replace the workers, each after its job, when a file that they have imported changes? For development: the
    #: steward looks at the files twice a second.
    reload: bool = setting(
        False, values.boolean, help="Replace workers whose files change, for development", is_masters=True
    )
    #: Count attempts, run times and waits, and measure the queues every 5 s, for `queuepool metrics` and the like? A
    #: worker counts in memory, without a command.
    metrics: bool = setting(True, values.boolean, help="Count attempts and measure queues")
    #: Job timeout in seconds, 0 = no limit; the job's own wins.
    timeout: float = setting(60.0, values.seconds, "SECONDS", "Job timeout; 0 disables it")
    #: Seconds after which SoftTimeout is raised in a job, so that it can clean up before its timeout kills it; 0 =
    #: never; the job's own wins. Jobs whose own timeout is not longer do not get it.
    soft_timeout: float = setting(
        0.0, values.seconds, "SECONDS", "Time after which a job gets SoftTimeout, before its timeout; 0 = never"
    )
    #: Seconds that a worker may take to import its modules, 0 = no limit.
    boot_timeout: float = setting(
        60.0, values.seconds, "SECONDS", "Timeout for importing the modules; 0 disables it", is_masters=True
    )
    #: Seconds past its deadline after which the master kills a worker that the kernel's alarm did not.
    grace: float = setting(
        1.0, values.seconds, "SECONDS", "Grace period before an overdue worker is killed", is_masters=True
    )
    #: Number of tries per job, 0 = no limit; the job's own wins. An attempt that dies with its worker or host does not
    #: use up a try.
    tries: int = setting(1, values.count, "COUNT", "Number of tries per job; 0 = no limit")
    #: Seconds before the next try, or a list with one number for each try: 1,5,30; the job's own wins.
    backoff: tuple[float, ...] = setting(
        (0.0,), values.delays, "SECONDS,...", "Delay before the next try, or a list of delays: 1,5,30"
    )
    #: Seconds before the next try of a job that the worker's code does not know, or whose arguments do not fit it,
    #: while tries are left: the job may be newer than the pool. Doubled after each further try, up to an hour; 0 = fail
    #: it at once.
    unknown_retry: float = setting(
        30.0, values.seconds, "SECONDS", "Delay before a job that the code does not know is tried again; 0 = fail it"
    )
    #: Deaths of its worker or host after which a job fails, whatever its tries, 0 = no limit.
    max_crashes: int = setting(
        3, values.count, "COUNT", "Fail a job once so many workers have died running it; 0 = no limit", is_masters=True
    )
    #: How long the state of each job is kept after its end, for `queuepool job` and Queue.wait; 0 = only of jobs that
    #: ask for it with @job(track=...). Each such job takes a separate command to settle.
    track: float = setting(
        0.0,
        values.seconds,
        "SECONDS",
        "How long to keep each job's state after its end; 0 = only for jobs with their own",
    )
    #: How long a record of each attempt is kept after its end, for `queuepool job` and `jobs --state done`: who ran it,
    #: from when until when, how it ended, and the job's payload up to 4 KB; 1d, 6h, 0 = not at all. At most 100,000
    #: records and 64 MB of each queue.
    keep_done: float = setting(
        0.0, values.seconds, "TIME", "How long to keep a record of each attempt after its end: 1d; 0 = not at all"
    )
    #: Resident memory at which a worker is recycled after its job, in MB (128, 128M, 1G): in total, or with a + above
    #: its size after importing the modules; 0 = no limit.
    memory: MemoryLimit = setting(
        MemoryLimit(128.0, is_above_boot=True),
        values.memory_limit,
        "MB",
        "Recycle a worker that reaches this size, after its job (+MB: above its boot size); 0 = never",
    )
    #: Resident memory at which a worker is killed during its job, in MB, 0 = never; not below memory.
    memory_hard: float = setting(
        0.0, values.megabytes, "MB", "Kill a worker that reaches this size during its job; 0 = never", is_masters=True
    )
    #: Seconds between polls where the store cannot block.
    sleep: float = setting(3.0, values.seconds, "SECONDS", "Polling interval where the store cannot block")
    #: Seconds to pause after each job.
    rest: float = setting(0.0, values.seconds, "SECONDS", "Pause after each job")
    #: Jobs that a worker reserves at once, 1 to 64; auto = as many as it is likely to finish in 5 ms. On Redis the next
    #: batch is requested once half of the last one has been started, unless this is the pool's only worker. Jobs that
    #: wait behind a slow one go back to their queue within a tenth of a second.
    reserve_ahead: int = setting(
        0, values.ahead, "COUNT", "Number of jobs to reserve at once; auto = by how long they take", written="auto"
    )
    #: Jobs after which a worker is recycled, jittered, 0 = never.
    max_jobs: int = setting(0, values.count, "COUNT", "Recycle a worker after this many jobs; 0 = never")
    #: Seconds after which a worker is recycled, jittered, 0 = never.
    max_time: float = setting(0.0, values.seconds, "SECONDS", "Recycle a worker after this time; 0 = never")
    #: Keep working in maintenance mode (queuepool down)?
    force: bool = setting(False, values.boolean, help="Keep working in maintenance mode")
    #: Seconds that a stop waits for running jobs, 0 = as long as their timeouts allow.
    stop_timeout: float = setting(
        0.0,
        values.seconds,
        "SECONDS",
        "Longest wait for running jobs at a stop; 0 = as long as they may run",
        is_masters=True,
    )
    #: Seconds after which the pool exits with code 1 if its workers, or its stewards, die before they become ready; 0 =
    #: never. A store that is away is waited for. Modules that cannot be imported at the start end the pool at once.
    give_up: float = setting(
        300.0,
        values.seconds,
        "SECONDS",
        "Exit with 1 if no worker or no steward becomes ready in this time; 0 = never",
        is_masters=True,
    )
    #: The log has a line for each finished job (a worker that runs more than 100 a second sums them up, once a second)
    #: and for everything that needs action. Log only warnings and errors, without a line for each finished job?
    quiet: bool = setting(False, values.boolean, help="Log only what needs action", forms=("-q", "--quiet"))
    #: Log every event, even each search for jobs and each start of one?
    verbose: bool = setting(False, values.boolean, help="Log every event", forms=("-v", "--verbose"))
    #: Log in JSON, one object per line, with the same content as the text?
    json: bool = setting(False, values.boolean, help="Log in JSON, one object per line", forms=("--json",))
    #: The level from which the application's own messages (Python's logging) are logged too, if the application has
    #: given its root logger no handler: debug, info, warning, error, critical.
    log_level: str = setting(
        "info",
        values.log_level,
        "LEVEL",
        "Log the application's own messages from this level up: debug, info, warning ...",
    )
    #: File to log to, empty = standard error.
    log: Path | None = setting(None, values.path, "FILE", "Log to this file instead of standard error")
    #: How long the pool's counters are kept for `queuepool history`, with metrics = yes: 1h to 35d, 0 = not at all.
    history: float = setting(
        35 * 86400.0,
        values.kept,
        "TIME",
        "Keep counters in the store for `queuepool history`: 35d, 24h; 0 = not at all",
        written="35d",
        is_masters=True,
    )
    #: Prefix of Laravel Horizon's keys (prefix in config/horizon.php), if its dashboard is to show the pool:
    #: laravel_horizon: or, on a cluster, with a hash tag, {horizon}: (docs/laravel.md); empty = it does not.
    horizon: str = setting(
        "", values.text, "TEXT", "Show the pool in Laravel Horizon, whose keys begin like this", is_masters=True
    )
    #: Address at which a process without a store serves /metrics, /livez, /readyz, /startedz and /api/v1/status over
    #: HTTP: 127.0.0.1:9465, [::1]:9465 or unix:/PATH; empty = none. It asks for no password: keep it on this host, or
    #: behind a firewall. Each pool needs its own.
    listen: str = setting(
        "", values.listen, "ADDRESS", "Serve metrics and health over HTTP at HOST:PORT or unix:/PATH", is_masters=True
    )
    #: What `--on` and `--everywhere` may do to the pool from other hosts: safe = pause, continue, restart, reload and
    #: scale it to one worker or more, cancel its jobs and ask where they are (`stack`); all = also scale it to 0, drain
    #: and stop it; off = nothing. Whoever may write to the store may do this; with `signing_keys`, whoever has such a
    #: key, too.
    remote: str = setting(
        "safe",
        one_of("safe", "all", "off"),
        "WHAT",
        "What operators on other hosts may do to the pool: safe, all or off",
        is_masters=True,
    )
    #: Directory of the pidfile and the board, relative to this file; empty = chosen by user and pool name.
    runtime_dir: Path | None = setting(
        None, values.path, "DIR", "Directory in which the pool makes its own directory", is_masters=True
    )

    @property
    def bounds(self) -> tuple[int, int]:
        """The fewest and the most workers that it may have by itself; both are ``workers`` if it does not scale."""
        return self.min_workers or self.workers, self.max_workers or self.workers

    @property
    def scales(self) -> bool:
        """Whether it has as many workers as its jobs need."""
        return self.bounds[0] < self.bounds[1]


#: what becomes of each kind of section
SECTIONS: Mapping[str, type] = MappingProxyType({
    "pool": PoolSettings, "connection": ConnectionSettings, "schedule": ScheduleSettings, "alerts": AlertSettings,
    "web": WebSettings,
})  # fmt: skip
#: the settings of each, by key
KEYS: Mapping[str, Mapping[str, Setting]] = MappingProxyType({
    kind: settings_of(fields) for kind, fields in SECTIONS.items()
})  # fmt: skip
#: keys of a connection that are URLs, and those that are names of tables
URL_KEYS = tuple(key for key, one in KEYS["connection"].items() if one.parse in (secrets.url, _other_url))
TABLE_KEYS = tuple(key for key, one in KEYS["connection"].items() if one.parse is values.table)
