"""How to open PostgreSQL: with our own session, or behind a pooler, which lends one for each transaction.

A pooler (PgBouncer in transaction mode) gives the server's session to another client as soon as a transaction is over.
So we neither rely on session state there nor leave any: no prepared statement, no setting, no LISTEN.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from typing import Any

from sqlalchemy import URL, Compiled, Connection, Engine, create_engine, event, exc

from queuepool.unix.originals import is_readable

#: the channel on which pushes are announced; a notice's payload is the queue
CHANNEL = "queuepool"
#: the channel on which operators wake stewards
NEWS = "queuepool_news"
#: seconds after which a server ends a transaction that waits for its client; a later COMMIT does nothing
LATEST_COMMIT = 2
#: seconds for which a connection without a word from its server counts as alive
_LIVES = 1.0
_DEFAULT_THRESHOLD = "5"
#: the first version that notices in mid-statement that its client has died
_NOTICES_DEATHS = 140000
_NOTICES = ("client_connection_check_interval", "1s")
_ENDS = ("idle_in_transaction_session_timeout", f"{LATEST_COMMIT}s")


def open_engine(url: URL, pool: dict[str, Any], shared: bool, timeout: float, create: Sequence[str]) -> Engine:
    """As ``engines.open_engine``; ``pool`` is SQLAlchemy's."""
    hosts = str(url.query.get("host", "")).count(",") + 1
    limits = {"connect_timeout": max(int(timeout / hosts), 2), "keepalives_idle": 30, "keepalives_interval": 10}
    # If the database has another encoding, its server converts, or reports what it cannot.
    usual = {"application_name": "queuepool", "client_encoding": "utf8", **limits}
    if hosts > 1:  # all but one are standbys, where no job can be written
        usual["target_session_attrs"] = "read-write"
    threshold = str(url.query.get("prepare_threshold", _DEFAULT_THRESHOLD))
    url = url.difference_update_query(["prepare_threshold"])
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={name: value for name, value in usual.items() if name not in url.query},
        **pool,
    )
    if shared:
        _ping_before_use(engine)

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
        from psycopg import Connection

        timed: Any = type("Timed", (_TimedReplies, Connection), {"reply_timeout": timeout})
        return timed.connect(*args, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        from psycopg import Pipeline

        connection.autocommit = True
        if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            _read_any_bytes(connection)
        record.info["lent"] = threshold == "none" or not _set_up(connection)
        record.info["pipelines"] = Pipeline.is_supported() and not record.info["lent"]
        connection.prepare_threshold = None if record.info["lent"] else int(threshold)
        if not (shared or record.info["lent"]):
            connection.add_notify_handler(lambda _notify: record.info.update(notified=True))
            connection.execute(f"LISTEN {CHANNEL}")

    return engine


def _ping_before_use(engine: Engine) -> None:
    """Have the pool open another connection in place of one whose server has ended it.

    A push must not be repeated, so this is found out before. As SQLAlchemy's ``pool_pre_ping``, but without a round
    trip for a connection that was used a moment ago: if the server has ended it since, its socket shows that.
    """

    @event.listens_for(engine, "checkin")
    def used(_connection: Any, record: Any) -> None:
        record.info["used_at"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def ping(connection: Any, record: Any, _proxy: Any) -> None:
        from psycopg import Error

        if time.monotonic() - record.info.get("used_at", math.inf) < _LIVES and not _has_more(connection):
            return
        try:
            connection.execute(";")
        except Error as error:
            if connection.closed:
                raise exc.InvalidatePoolError from error
            raise


def _has_more(connection: Any) -> bool:
    """Whether there is something to read that nobody asked for: mostly that the session has ended."""
    return bool(connection.closed) or is_readable(connection.fileno(), 0.0)


def is_lent(connection: Connection) -> bool:
    """Whether a pooler lends the server's session, so that another client may get it after each transaction."""
    return bool(connection.info.get("lent"))


def can_pipeline(connection: Connection) -> bool:
    """Whether ``begin_with`` may be called: in our own session, and with a libpq that sends ahead (14 or later)."""
    return bool(connection.info.get("pipelines"))


def begin_with(connection: Connection, *statements: tuple[Compiled, dict[str, Any]]) -> list[list[Any]]:
    """Begin a transaction and carry out its first statements, in one round trip; returns the rows of each.

    All are sent before the first reply is read: two statements in one text could not be prepared.
    """
    return _sent_ahead(connection, "BEGIN", statements)


def send_ahead(connection: Connection, *statements: tuple[Compiled, dict[str, Any]]) -> list[list[Any]]:
    """Carry out the next statements of a transaction, in one round trip; returns the rows of each."""
    return _sent_ahead(connection, "", statements)


def _sent_ahead(
    connection: Connection, first: str, statements: Sequence[tuple[Compiled, dict[str, Any]]]
) -> list[list[Any]]:
    from psycopg import Error

    driver: Any = connection.connection.driver_connection
    try:
        with driver.pipeline():
            if first:
                driver.execute(first)
            cursors = [driver.execute(one.string, one.construct_params(values)) for one, values in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
    except Error as error:
        raise exc.DBAPIError.instance(None, None, error, Error) from error


def wake_stewards(connection: Connection) -> None:
    """End the waits of ``news_on``, as a hint."""
    connection.exec_driver_sql(f"NOTIFY {NEWS}")


def news_on(connection: Connection) -> int | None:
    """The descriptor on which an operator's notice is to be awaited; ``None`` = on this connection none can come.

    From now on the connection hears of no pushes, which would end each wait of a steward.
    """
    if is_lent(connection):
        return None
    if not connection.info.get("hears_news"):
        connection.exec_driver_sql(f"UNLISTEN {CHANNEL}")
        connection.exec_driver_sql(f"LISTEN {NEWS}")
        connection.info.update(hears_news=True, notified=False)
    driver: Any = connection.connection.driver_connection
    return int(driver.fileno())


def has_news(connection: Connection) -> bool:
    """Whether a notice has come since the last call, also during any other statement."""
    connection.exec_driver_sql("SELECT 1")  # a notice is read with the reply to a statement
    return take_news(connection)


def take_news(connection: Connection) -> bool:
    """As ``has_news``, as far as it is read."""
    return bool(connection.info.pop("notified", False))


def begin_lent(connection: Connection) -> str:
    """The statements that begin a transaction in a lent session, whose settings are not ours."""
    settings = [_ENDS]
    if _version(connection.connection.driver_connection) >= _NOTICES_DEATHS:
        settings.append(_NOTICES)
    local = [f"SET LOCAL {name} = '{value}'" for name, value in settings]
    return "; ".join(["BEGIN ISOLATION LEVEL READ COMMITTED", *local])


def _set_up(connection: Any) -> bool:
    """Set up the session; ``False``, having done nothing, if it is not the one announced when connecting.

    A pooler announces its own process id, by which it later identifies the client whose statement to cancel.
    """
    settings = [
        ("default_transaction_isolation", "read committed"),
        # A plan made for an empty table would sort the table for every job once it has a million rows.
        ("plan_cache_mode", "force_custom_plan"),
        _ENDS,
    ]
    if _version(connection) >= _NOTICES_DEATHS:
        # A client that dies in mid-statement would otherwise hold its locks until the statement ends.
        settings.append(_NOTICES)
    wanted = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings)
    ours = f"SELECT {wanted} WHERE pg_backend_pid() = {connection.info.backend_pid}"
    return connection.execute(ours).fetchone() is not None


def _version(connection: Any) -> int:
    return int(connection.info.server_version)


def _read_any_bytes(connection: Any) -> None:
    """Read texts as UTF-8, or else as raw bytes (``encoding.bytes_of``): this database does not check them.

    With UTF-8, the server would refuse to send a row that another program has written in another encoding, and with it
    all rows of the queue.
    """
    from psycopg.types.string import TextLoader

    class Lenient(TextLoader):
        def load(self, data: Any) -> str:
            return bytes(data).decode("utf-8", "surrogateescape")

    connection.execute("SET client_encoding TO SQL_ASCII")
    for name in ("text", "varchar", "bpchar", "name", '"char"'):
        connection.adapters.register_loader(name, Lenient)


class _TimedReplies:
    """A psycopg connection that waits at most ``reply_timeout`` seconds for the server; psycopg waits forever."""

    reply_timeout: float

    def wait(self, generator: Any, interval: float = 0.1) -> Any:
        return super().wait(_bounded(generator, self.reply_timeout), interval)  # type: ignore[misc]


def _bounded(generator: Generator[Any, Any, Any], timeout: float) -> Generator[Any, Any, Any]:
    from psycopg import OperationalError

    ends, ready = time.monotonic() + timeout, None
    while True:
        try:
            wanted = generator.send(ready)
        except StopIteration as done:
            return done.value
        ready = yield wanted
        if not ready and time.monotonic() >= ends:
            raise OperationalError(f"the server has not responded for {timeout:g} seconds")
