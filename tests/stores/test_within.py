"""A push in the application's own transaction: committed with it, or not at all."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from queuepool import configure, job
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.stores.factory import Stores
from tests.support.drivers import DATABASES, connection_of, opened
from tests.support.own_connections import KINDS, drivers, engine_of, session, sqlalchemys
from tests.support.store_contract import OURS

EVERY = [(database, kind) for database in DATABASES for kind in KINDS]


@pytest.fixture
def database(request: pytest.FixtureRequest) -> ConnectionSettings:
    return connection_of(request.param, request)


@pytest.fixture
def sql(database: ConnectionSettings) -> Iterator[Stores]:
    with opened(database) as stores:
        yield stores


@pytest.fixture
def queue(sql: Stores) -> Iterator[Queue]:
    shared = configure(Queue(sql.settings))
    yield shared
    shared.close()


@pytest.fixture
def own(sql: Stores, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The application's connection, with its own table."""
    with engine_of(sql.settings.url).begin() as connection:
        connection.execute(text("CREATE TABLE orders (id integer)"))
    with KINDS[request.param](sql.settings.url) as connection:
        yield connection


each_database = pytest.mark.parametrize("database", DATABASES, indirect=True)
each_connection = pytest.mark.parametrize(("database", "own"), EVERY, indirect=True)


def some_connection(test: Callable[..., None]) -> Callable[..., None]:
    """One of them by default: that each takes part in a transaction is another test's."""
    return pytest.mark.by_turns("database", "own")(each_connection(test))


def names(sql: Stores, queue: str = "default") -> list[str]:
    return [decode(lease.receipt, 0).name for lease in sql.queue.reserve([queue], OURS, 1000).leases]


@job("within.send")
def send(order: int) -> None: ...


@job("within.once", unique="{order}")
def once(order: int) -> None: ...


@pytest.mark.every_store("database")
@each_connection
def test_a_job_is_there_once_the_transaction_is_committed(sql, queue, own):
    queue.within(own).push("first", {"to": "ä😀%s :x"})
    send.using(within=own).dispatch(order=1)

    assert 0 == queue.size()
    own.commit()
    assert ["first", "within.send"] == names(sql)


@some_connection
def test_a_job_is_gone_with_a_transaction_that_is_rolled_back(sql, queue, own):
    queue.within(own).push("first")
    send.using(within=own, delay=5).dispatch(order=1)
    own.rollback()

    assert 0 == queue.size()


@pytest.mark.thorough("2,500 of them; two in test_a_job_is_there_once_the_transaction_is_committed")
@some_connection
def test_many_jobs_are_pushed_in_one_transaction(sql, queue, own):
    bound = queue.within(own)
    ids = bound.bulk([(f"job-{number}", None) for number in range(2500)])
    bound.later(60, "late")

    assert 0 == queue.size()
    own.commit()
    assert (2500, 2501, 1) == (len(set(ids)), queue.size(), queue.sizes().delayed)


@some_connection
def test_a_unique_lock_is_taken_in_the_same_transaction(sql, queue, own):
    first = once.using(within=own).dispatch(order=1)
    again = once.using(within=own).dispatch(order=1)
    own.rollback()
    after = once.using(within=own).dispatch(order=1)
    own.commit()

    assert (True, "", True) == (bool(first), again, bool(after))
    assert ("", 1) == (once.dispatch(order=1), queue.size())


@some_connection
def test_the_state_of_a_tracked_job_is_committed_with_it(sql, queue, own):
    kept = queue.within(own).push("first", track=60)
    assert kept.job() is None
    own.commit()
    lost = queue.within(own).push("second", track=60, unique_id="1")
    own.rollback()

    assert ("queued", None) == (kept.job().state, lost.job())


@pytest.mark.every_store("database")
@each_database
def test_an_object_job_and_a_raw_payload_are_pushed_within(sql, queue):
    with sqlalchemys(sql.settings.url) as own, own.begin():
        queue.within(own).push_object("App\\Jobs\\Send", {"to": "a@b.c"})
        queue.within(own).push_raw(b'{"job": "raw", "data": []}')

    assert ["App\\Jobs\\Send", "raw"] == names(sql)


@pytest.mark.every_store("database")
@each_database
def test_only_the_jobs_of_a_savepoint_go_with_it(sql, queue):
    with session(sql.settings.url) as own:
        queue.within(own).push("before")
        with own.begin_nested() as savepoint:
            queue.within(own).push("inside")
            savepoint.rollback()
        queue.within(own).push("after")
        own.commit()

    assert ["before", "after"] == names(sql)


@pytest.mark.every_store("database")
@each_database
def test_an_expired_lock_is_taken_over(sql, queue):
    queue.push("once", unique_id="1", unique_for=0.001)
    with sqlalchemys(sql.settings.url) as own, own.begin():
        own.execute(text("UPDATE cache_locks SET expiration = 1"))
        assert queue.within(own).push("once", unique_id="1")

    assert ["once", "once"] == names(sql)


@pytest.mark.fault("F75")
@pytest.mark.every_store("database")
@each_database
def test_a_process_that_is_killed_before_its_commit_has_pushed_nothing(sql):
    script = """
        import os, signal, sys
        from queuepool.config.settings import ConnectionSettings
        from queuepool.jobs.client import Queue
        from tests.support.own_connections import drivers

        with drivers(sys.argv[1]) as own:
            queue = Queue(ConnectionSettings(url=sys.argv[1]))
            queue.within(own).push("committed")
            own.commit()
            queue.within(own).bulk([("lost", None)] * 100)
            queue.within(own).push("lost", unique_id="1")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), sql.settings.url], timeout=60)

    assert -signal.SIGKILL == done.returncode
    assert ["committed"] == names(sql)
    # Until its server has found that it is dead, the lock is held.
    with closing(Queue(replace(sql.settings, timeout=60.0))) as patient:
        assert patient.push("lost", unique_id="1")


@pytest.mark.every_store("database")
@each_database
def test_two_transactions_that_want_one_lock_get_it_once(sql, queue):
    """The second waits for the first, or is refused because of it; both never push."""
    with drivers(sql.settings.url) as one, drivers(sql.settings.url, **_impatient(sql)) as other:
        assert queue.within(one).push("once", unique_id="1")
        with pytest.raises(StoreDown):
            queue.within(other).push("once", unique_id="1")
        other.rollback()
        one.commit()

        assert "" == queue.within(other).push("once", unique_id="1")


def _impatient(sql: Stores) -> dict[str, Any]:
    """The driver's options by which a statement waits for a lock only shortly."""
    url = sql.settings.url
    if url.startswith("sqlite"):
        return {"timeout": 0.1}
    if url.startswith("postgresql"):
        return {"options": "-c lock_timeout=100ms"}
    return {"init_command": "SET SESSION innodb_lock_wait_timeout = 1"}


@pytest.mark.every_store("database")
@pytest.mark.bad_input("B121")
@each_database
def test_a_connection_to_another_database_is_refused(sql, queue, tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as own, pytest.raises(ValueError) as refused:
        queue.within(own).push("lost")
    own.close()

    assert "within: the connection leads to a different database than the queue's, " in str(refused.value)
    assert "\n" not in str(refused.value)
    assert 0 == queue.size()


@pytest.mark.every_store("database")
@pytest.mark.bad_input("B121")
@pytest.mark.parametrize("database", ["postgres", "mariadb"], indirect=True)
def test_another_database_of_the_same_server_is_refused(sql, queue, request):
    server = request.getfixturevalue("postgres" if "postgres" in sql.settings.url else "mariadb")
    with server.database() as url, drivers(url) as own, pytest.raises(ValueError, match="different database"):
        queue.within(own).push("lost")


@pytest.mark.bad_input("B121")
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_another_table_of_that_name_is_refused(sql, queue):
    with engine_of(sql.settings.url).begin() as connection:
        connection.execute(text("CREATE SCHEMA other"))
        connection.execute(text("CREATE TABLE other.jobs (LIKE jobs)"))
    with drivers(sql.settings.url, options="-c search_path=other") as own, pytest.raises(ValueError, match="different"):
        queue.within(own).push("lost")


@pytest.mark.every_store("database")
@pytest.mark.bad_input("B122")
@each_database
def test_a_connection_in_autocommit_is_refused(sql, queue):
    is_sqlite = sql.settings.url.startswith("sqlite")
    options = {"isolation_level": None} if is_sqlite else {"autocommit": True}
    with drivers(sql.settings.url, **options) as own:
        with pytest.raises(ValueError, match=r"^within: the connection is in autocommit"):
            queue.within(own).push("lost")
        own.cursor().execute("BEGIN")
        queue.within(own).push("kept")
        own.commit()
    with sqlalchemys(sql.settings.url) as own:
        own.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(ValueError, match=r"^within: the connection is in autocommit"):
            queue.within(own).push("lost")

    assert ["kept"] == names(sql)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_commit_wakes_the_workers_that_wait(sql, queue):
    with drivers(sql.settings.url, autocommit=True) as listener, drivers(sql.settings.url) as own:
        listener.execute("LISTEN queuepool")
        queue.within(own).push("first", queue="emails")
        before = list(listener.notifies(timeout=0.05))
        own.commit()
        [notice] = listener.notifies(timeout=30, stop_after=1)

    assert ([], "emails") == (before, notice.payload)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize("is_session", [False, True])
def test_an_asynchronous_connection_takes_awaited_pushes(sql, queue, is_session):
    async def push() -> None:
        engine = create_async_engine(sql.settings.url.replace("://", "+psycopg://", 1))
        async with AsyncSession(engine) if is_session else engine.connect() as own:
            await send.using(within=own).adispatch(1)
            await queue.within(own).abulk([("second", None), ("third", None)])
            await own.commit()
            await queue.within(own).apush("lost")
            await own.run_sync(lambda inner: queue.within(inner).push("lost, too"))
            await own.rollback()
            await own.execute(text("SELECT 1"))
            with pytest.raises(TypeError, match=r"^within: the connection is asynchronous: await apush"):
                queue.within(own).push("lost")
        await engine.dispose()

    asyncio.run(push())

    assert ["within.send", "second", "third"] == names(sql)


@pytest.mark.bad_input("B125")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_blocking_connection_is_refused_in_a_coroutine(sql, queue):
    with drivers(sql.settings.url) as own, pytest.raises(TypeError, match=r"^within: this connection would block"):
        asyncio.run(send.using(within=own).adispatch(1))

    assert 0 == queue.size()


@pytest.mark.bad_input("B122")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_is_no_connection_is_refused(sql, queue):
    with pytest.raises(TypeError, match=r"^within takes an SQLAlchemy Session .*, not a str$"):
        queue.within(sql.settings.url).push("lost")
    with pytest.raises(TypeError, match=r", not a sqlalchemy\.engine\.base\.Engine$"):
        queue.within(engine_of(sql.settings.url)).push("lost")
    with pytest.raises(TypeError, match=r", not a sqlite3\.Cursor$"), drivers(sql.settings.url) as own:
        queue.within(own.cursor()).push("lost")


@pytest.mark.bad_input("B123")
def test_a_queue_in_redis_takes_no_part_in_a_transaction(queue_in_redis, sqlite_url):
    with (
        drivers(sqlite_url) as own,
        pytest.raises(ValueError, match=r"^within: this queue is in Redis, .*after_commit"),
    ):
        queue_in_redis.within(own)
    with pytest.raises(ValueError, match=r"^give within or after_commit"):
        send.using(within=object(), after_commit=object()).dispatch(order=1)


@pytest.fixture
def queue_in_redis(connection: ConnectionSettings) -> Iterator[Queue]:
    opened_queue = configure(connection)
    yield opened_queue
    opened_queue.close()


@pytest.mark.every_store("database")
@each_database
def test_a_missing_table_is_one_clear_line(sql, queue):
    with engine_of(sql.settings.url).begin() as connection:
        connection.execute(text("DROP TABLE cache_locks"))
    with drivers(sql.settings.url) as own, pytest.raises(StoreDown, match="no table cache_locks: run `queuepool mig"):
        queue.within(own).push("lost", unique_id="1")
