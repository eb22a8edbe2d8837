"""How PostgreSQL is opened: with a session of one's own, or behind a pooler, which lends one for each transaction.

A pooler (PgBouncer in transaction mode) gives the server's session to somebody else as soon as a transaction is over.
So what a session would keep is not relied upon there, nor left in it: no prepared statement, no setting, no LISTEN.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

#: the channel on which pushes are told; the payload is the queue
CHANNEL = "queuepool"
#: seconds after which a server ends a transaction that waits for its client: a COMMIT delivered later does nothing
LATEST_COMMIT = 2
_DEFAULT_THRESHOLD = "5"
#: the version from which a server notices in the middle of a statement that its client has died
_NOTICES_DEATHS = 140000
_NOTICES = ("client_connection_check_interval", "1s")
_ENDS = ("idle_in_transaction_session_timeout", f"{LATEST_COMMIT}s")


def open_engine(url: URL, pool: dict[str, Any], shared: bool, patience: float, create: bool) -> Engine:
    """As ``engines.open_engine``; ``pool`` is SQLAlchemy's."""
    limits = {"connect_timeout": max(int(patience), 2), "keepalives_idle": 30, "keepalives_interval": 10}
    usual = {"application_name": "queuepool", **limits}
    threshold = str(url.query.get("prepare_threshold", _DEFAULT_THRESHOLD))
    url = url.difference_update_query(["prepare_threshold"])
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={name: value for name, value in usual.items() if name not in url.query},
        pool_pre_ping=shared,
        **pool,
    )

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
        from psycopg import Connection

        impatient: Any = type("Impatient", (_Impatient, Connection), {"patience": patience})
        return impatient.connect(*args, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.autocommit = True
        record.info["lent"] = threshold == "none" or not _set_up(connection)
        connection.prepare_threshold = None if record.info["lent"] else int(threshold)
        if not (shared or record.info["lent"]):
            connection.add_notify_handler(lambda _notify: record.info.update(told=True))
            connection.execute(f"LISTEN {CHANNEL}")

    return engine


def is_lent(connection: Connection) -> bool:
    """Whether somebody else may have the server's session after each transaction."""
    return bool(connection.info.get("lent"))


def begin_lent(connection: Connection) -> str:
    """Begins a transaction in a session that has nobody's settings, or somebody else's."""
    settings = [_ENDS]
    if _version(connection.connection.driver_connection) >= _NOTICES_DEATHS:
        settings.append(_NOTICES)
    said = [f"SET LOCAL {name} = '{value}'" for name, value in settings]
    return "; ".join(["BEGIN ISOLATION LEVEL READ COMMITTED", *said])


def _set_up(connection: Any) -> bool:
    """Make the session ours; ``False``, and nothing done, when it is not the one that we were told of at the connect.

    A pooler makes up the process id that it tells, by which it finds out later whose statement is to be cancelled.
    """
    settings = [
        ("default_transaction_isolation", "read committed"),
        # A plan made for a table that was empty sorts it, for every job, when a million rows have come.
        ("plan_cache_mode", "force_custom_plan"),
        _ENDS,
    ]
    if _version(connection) >= _NOTICES_DEATHS:
        # A client that died in the middle of a statement would hold its locks until that is over.
        settings.append(_NOTICES)
    wanted = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings)
    ours = f"SELECT {wanted} WHERE pg_backend_pid() = {connection.info.backend_pid}"
    return connection.execute(ours).fetchone() is not None


def _version(connection: Any) -> int:
    return int(connection.info.server_version)


class _Impatient:
    """psycopg waits for ever for a server that says nothing; this one for ``patience`` seconds."""

    patience: float

    def wait(self, generator: Any, interval: float = 0.1) -> Any:
        return super().wait(_bounded(generator, self.patience), interval)  # type: ignore[misc]


def _bounded(generator: Generator[Any, Any, Any], patience: float) -> Generator[Any, Any, Any]:
    from psycopg import OperationalError

    ends, ready = time.monotonic() + patience, None
    while True:
        try:
            wanted = generator.send(ready)
        except StopIteration as done:
            return done.value
        ready = yield wanted
        if not ready and time.monotonic() >= ends:
            raise OperationalError(f"the server has said nothing for {patience:g} seconds")
