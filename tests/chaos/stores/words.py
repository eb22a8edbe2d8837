"""The statements, addresses and figures in which PostgreSQL and MariaDB differ."""

from __future__ import annotations

from dataclasses import dataclass

#: the pools' account, and its database
OURS = "chaos"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """``{}`` is a password in ``account``, a connection's number in ``end``."""

    #: where the server listens, in its folder
    socket: str
    url: str
    account: tuple[str, ...]
    #: numbers of the pools' connections: all, and those in the midst of a transaction
    connections: str
    transactions: str
    end: str
    #: for a session that locks: it gives up soon, and is never the one that a deadlock costs its transaction
    impatient: tuple[str, ...]
    clients: str
    commands: str
    #: deadlocks that the server has broken so far
    deadlocks: str
    #: what an idle worker asks in a second
    needed: float


POSTGRES = Words(
    socket=".s.PGSQL.5432",
    url=f"postgresql://{OURS}:{{password}}@/{OURS}?host={{folder}}",
    account=(
        f"CREATE ROLE {OURS} LOGIN PASSWORD '{{}}'",
        f"ALTER ROLE {OURS} SET deadlock_timeout = '20ms'",
        f"CREATE DATABASE {OURS} OWNER {OURS}",
    ),
    connections=f"SELECT pid FROM pg_stat_activity WHERE usename = '{OURS}'",
    transactions=f"SELECT pid FROM pg_stat_activity WHERE usename = '{OURS}' AND xact_start IS NOT NULL",
    end="SELECT pg_terminate_backend({})",
    impatient=("SET lock_timeout = '300ms'", "SET deadlock_timeout = '10s'"),
    clients="SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
    commands=f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{OURS}'",
    deadlocks=f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{OURS}'",
    # Each of five queues is looked at once a second.
    needed=5,
)
_STATUS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{}'"
MARIADB = Words(
    socket="maria.sock",
    url=f"mariadb://{OURS}:{{password}}@localhost/{OURS}?unix_socket={{folder}}/maria.sock",
    account=(
        f"CREATE USER {OURS}@localhost IDENTIFIED BY '{{}}'",
        f"CREATE DATABASE {OURS}",
        f"GRANT ALL ON {OURS}.* TO {OURS}@localhost",
    ),
    connections=f"SELECT id FROM information_schema.processlist WHERE user = '{OURS}'",
    transactions="SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_mysql_thread_id > 0",
    end="KILL CONNECTION {}",
    impatient=("SET SESSION innodb_lock_wait_timeout = 1",),
    clients="SELECT count(*) FROM information_schema.processlist",
    commands=_STATUS.format("QUESTIONS"),
    deadlocks=_STATUS.format("INNODB_DEADLOCKS"),
    # Each of three queues is looked at twenty times a second.
    needed=64,
)
