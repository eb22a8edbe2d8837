"""A database refuses, hangs or goes away: each is an outage, after which the same objects work again."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied, StoreDown
from queuepool.stores.factory import Stores
from queuepool.stores.sql.migrate import migrate
from tests.support.databases import DatabaseServer
from tests.support.eventually import eventually
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, failed_job, record, reserved

T = TypeVar("T")
#: seconds: that of a store whose server is silent, and that which a busy machine may take for anything
PATIENCE, ROOM = 2.0, 15.0
SERVERS = [pytest.param(name, marks=pytest.mark.every_store("server", "own")) for name in ("postgres", "mariadb")]

VERBS: dict[str, Callable[[Stores], object]] = {
    "push": lambda stores: stores.queue.push("default", new_jobs(payload("b"))),
    "reserve": lambda stores: stores.queue.reserve(["default"], OURS, 1),
    "sizes": lambda stores: stores.queue.sizes("default"),
    "wait": lambda stores: stores.queue.wait(["default"], 5.0),
}


def drop(stores: Stores, table: str) -> None:
    stores.client.ask(lambda connection: connection.exec_driver_sql(f"DROP TABLE {table}"))


@pytest.mark.every_store("database")
@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_table_is_named_with_its_remedy_and_used_as_soon_as_it_is_there(sql, database, verb):
    drop(sql, "jobs")
    fresh = Stores(database)

    for stores in (sql, fresh):
        with pytest.raises(StoreDenied, match=r"no table jobs.*queuepool migrate"):
            VERBS[verb](stores)

    assert ["jobs"] == migrate(sql.client)
    for stores in (sql, fresh):
        stores.queue.push("default", new_jobs(payload("a")))
        assert ["a"] == ids(stores.queue.reserve(["default"], OURS, 1).leases)
    fresh.close()


@pytest.mark.fault("F74")
def test_a_job_that_cannot_be_recorded_for_want_of_a_table_is_not_lost(sql):
    [lease] = reserved(sql.queue, payload("a"))
    drop(sql, "failed_jobs")

    with pytest.raises(StoreDenied, match=r"no table failed_jobs.*queuepool migrate"):
        sql.queue.fail(lease, "a", record(lease))

    assert 1 == int(sql.client.ask(lambda c: c.exec_driver_sql("SELECT count(*) FROM jobs").scalar_one()))
    migrate(sql.client)
    assert sql.queue.fail(lease, "a", record(lease))
    assert ["a"] == [found.id for found in sql.failed.page()]


def test_a_release_that_cannot_be_counted_for_want_of_a_table_is_not_made(sql):
    [lease] = reserved(sql.queue, payload("a"))
    drop(sql, "cache")

    with pytest.raises(StoreDenied, match=r"no table cache.*queuepool migrate"):
        sql.queue.release(lease, 0.0, "a", "exceptions")

    assert [True] == sql.queue.renew([lease])
    assert 1 == sql.queue.sizes("default").total


# Servers


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=SERVERS)
def own(request: pytest.FixtureRequest) -> Any:
    """One that may be stopped and killed."""
    return request.getfixturevalue(f"own_{request.param}")


@pytest.fixture
def remote(server: DatabaseServer) -> Iterator[Stores]:
    with server.database() as url, connected(url) as stores:
        yield stores


@contextmanager
def connected(url: str, **options: Any) -> Iterator[Stores]:
    stores = Stores(ConnectionSettings(url=url), reply_timeout=ROOM, **options)
    migrate(stores.client)
    yield stores
    stores.close()


@pytest.mark.fault("F58")
def test_a_wrong_password_is_an_outage_that_does_not_repeat_it(own):
    own.execute(own.url, *ACCOUNTS[own.brand.driver])
    if own.brand.driver == "psycopg":
        rules = Path(own.brand.folder, "data/pg_hba.conf")
        rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
        own.restart()
    stores = Stores(ConnectionSettings(url=own.url.replace("queuepool@", "locked:s3cr3t@")))

    for verb in VERBS.values():
        with pytest.raises(StoreDown) as caught:
            verb(stores)
        assert "s3cr3t" not in f"{caught.value} {caught.value!r}"
        assert "locked" in str(caught.value)
    stores.close()


ACCOUNTS = {
    "psycopg": ["CREATE ROLE locked LOGIN PASSWORD 'right'"],
    "pymysql": ["CREATE USER locked@localhost IDENTIFIED BY 'right'"],
}


@pytest.mark.fault("F58")
def test_an_unknown_database_is_an_outage(server):
    stores = Stores(ConnectionSettings(url=server.url.replace(f"/{server.brand.first}?", "/nowhere?")))

    with pytest.raises(StoreDown, match=r"nowhere"):
        stores.queue.reserve(["default"], OURS, 1)
    stores.close()


#: PostgreSQL looks once whether a wait is a deadlock, 50 ms after it began: it must be one by then
OTHERS_WAIT = "SELECT 1 FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"


@pytest.mark.fault("F71")
def test_a_deadlock_is_tried_again(server, remote):
    remote.queue.push("default", new_jobs(payload("a"), payload("b")))
    remote.client.transaction(lambda c: c.exec_driver_sql("UPDATE jobs SET created_at = 0"))
    tries: list[int] = []
    has_first, touch = threading.Event(), "UPDATE jobs SET created_at = created_at + 1 WHERE id = {}"

    def work(connection: Any) -> None:
        tries.append(1)
        connection.exec_driver_sql(touch.format(1))
        has_first.set()
        if server.brand.driver == "psycopg" and len(tries) == 1:
            eventually(lambda: connection.exec_driver_sql(OTHERS_WAIT).first())
        connection.exec_driver_sql(touch.format(2))

    with server.engine(remote.client.url).connect() as other:
        if server.brand.driver == "psycopg":
            other.exec_driver_sql("SET deadlock_timeout = '30s'")  # so it is the other who gives way
        # In MariaDB it is the one who has written less.
        other.exec_driver_sql("CREATE TABLE weight AS SELECT 1 AS grams")
        for _ in range(8):
            other.exec_driver_sql("INSERT INTO weight SELECT grams FROM weight")
        other.exec_driver_sql(touch.format(2))
        thread = threading.Thread(target=remote.client.transaction, args=(work,))
        thread.start()
        has_first.wait()
        other.exec_driver_sql(touch.format(1))
        other.commit()
    thread.join()

    assert 2 <= len(tries)
    assert [2, 2] == remote.client.ask(lambda c: c.exec_driver_sql("SELECT created_at FROM jobs").scalars().all())


def family(server: DatabaseServer) -> list[psutil.Process]:
    first = psutil.Process(server.process.pid)
    return [first, *first.children(recursive=True)]


def is_stopped(process: psutil.Process) -> bool:
    """All its threads: a signal stops one after the other."""
    states = (stat.read_text().rpartition(") ")[2][0] for stat in Path(f"/proc/{process.pid}/task").glob("*/stat"))
    return set(states) == {"T"}


@contextmanager
def silent(server: DatabaseServer) -> Iterator[None]:
    """It hears, and answers nothing."""
    stopped = family(server)
    for process in stopped:
        process.suspend()
    try:
        eventually(lambda: all(map(is_stopped, stopped)))
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):  # a session that lost its client ends when the server goes on
                process.resume()


@pytest.mark.fault("F52")
@pytest.mark.by_turns("shared")
@pytest.mark.parametrize("shared", [False, True], ids=["worker", "producer"])
def test_a_server_that_says_nothing_is_an_outage_after_the_patience_and_no_longer(own, shared):
    with connected(own.url) as patient:
        patient.queue.push("default", new_jobs(payload("a")))
    with closing(Stores(ConnectionSettings(url=own.url), reply_timeout=PATIENCE, shared=shared)) as stores:
        answered(lambda: stores.queue.sizes("default"))
        for verb in ("push", "reserve"):
            with silent(own):
                began = time.monotonic()
                with pytest.raises(StoreDown):
                    VERBS[verb](stores)
                assert PATIENCE * 0.9 < time.monotonic() - began < PATIENCE + ROOM

            assert answered(lambda: stores.queue.sizes("default").total)
        assert ["c"] == answered(lambda: pushed_and_taken(stores))


def answered(call: Callable[[], T]) -> T:
    """The answer, also where a crowded machine's server is silent once more; what fails at once is not asked again."""
    for _ in range(5):
        began = time.monotonic()
        with suppress(StoreDown):
            return call()
        assert time.monotonic() - began > PATIENCE * 0.9
    return call()


def pushed_and_taken(stores: Stores) -> list[str]:
    stores.queue.push("high", new_jobs(payload("c")))
    return ids(stores.queue.reserve(["high"], OURS, 1).leases)


@pytest.fixture
def collected() -> Iterator[None]:
    """What drivers leave to be collected is collected in this very test."""
    yield
    gc.collect()


# PyMySQL leaves a unix socket open until it is collected when nobody answers there.
@pytest.mark.fault("F68")
@pytest.mark.filterwarnings("ignore:.*:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("collected")
@pytest.mark.by_turns("shared")
@pytest.mark.parametrize("shared", [False, True], ids=["worker", "producer"])
def test_a_server_that_was_killed_is_used_again_when_it_is_back(own, shared):
    with connected(own.url, shared=shared) as stores:
        leases = reserved(stores.queue, payload("a"), payload("b"))

        own.kill()
        for verb in VERBS.values():
            with pytest.raises(StoreDown):
                verb(stores)
        own.start()

        assert [True, True] == stores.queue.delete(leases)
        assert "c" == failed_job(stores, "c").id


ENDING = {
    "psycopg": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'queuepool'",
    # One may just be about to close by itself.
    "pymysql": "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;"
    " FOR other IN (SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db IS NOT NULL)"
    " DO KILL other.id; END FOR; END",
}


@pytest.mark.fault("F68")
def test_a_connection_that_the_server_ends_in_mid_transaction_takes_the_transaction_back(own):
    with connected(own.url) as stores:
        [lease] = reserved(stores.queue, payload("a"))

        def work(connection: Any) -> None:
            connection.exec_driver_sql("DELETE FROM jobs")
            own.execute(own.url, ENDING[own.brand.driver])
            connection.exec_driver_sql("SELECT 1")

        with pytest.raises(StoreDown):
            stores.client.transaction(work)

        assert [True] == stores.queue.delete([lease])


@pytest.mark.fault("F70")
@pytest.mark.parametrize(
    ("obstacle", "said", "remedy"),
    [
        ("max_page_count = 1", "database or disk is full", "max_page_count = 1000000"),
        ("query_only = ON", "attempt to write a readonly database", "query_only = OFF"),
    ],
    ids=["full", "read-only"],
)
def test_what_a_file_refuses_is_told_in_its_words_and_nothing_is_lost(sqlite_url, obstacle, said, remedy):
    """By SQLite's own means: a full disk, and a file of somebody else, are these errors."""
    stores = Stores(ConnectionSettings(url=sqlite_url, embedded=True))
    [lease] = reserved(stores.queue, payload("a"))

    def say(pragma: str) -> None:
        stores.client.ask(lambda connection: connection.exec_driver_sql(f"PRAGMA {pragma}"))

    for verb in (
        lambda: stores.queue.push("default", new_jobs(payload("b", data="x" * 100_000))),
        lambda: stores.queue.fail(lease, "a", record(lease) | {"exception": "x" * 100_000}),
    ):
        say(obstacle)
        with pytest.raises(StoreDown, match=said):
            verb()
    say(remedy)
    sizes = stores.queue.sizes("default")
    assert (0, 1) == (sizes.ready, sizes.reserved)
    assert stores.queue.fail(lease, "a", record(lease))
    assert ["a"] == [row.id for row in stores.failed.page()]
    stores.close()


@pytest.mark.fault("F52")
@pytest.mark.by_turns("shared")
@pytest.mark.parametrize("shared", [False, True], ids=["worker", "producer"])
def test_a_transaction_that_the_server_ended_as_its_process_was_stopped_is_made_again(postgres_url, shared):
    sessions = []

    def push_after_a_pause(connection: Any) -> None:
        sessions.append(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
        if len(sessions) == 1:
            eventually(lambda: not looking.client.ask(lambda other: lives(other, sessions[0])))
        connection.exec_driver_sql("INSERT INTO notes VALUES (1)")

    with connected(postgres_url, shared=shared) as stores, connected(postgres_url, shared=True) as looking:
        stores.client.ask(lambda connection: connection.exec_driver_sql("CREATE TABLE notes (number int)"))
        stores.client.transaction(push_after_a_pause)
        count = stores.client.ask(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM notes").scalar())

    assert (2, 1) == (len(set(sessions)), count)


def lives(connection: Any, session: int) -> bool:
    return bool(connection.exec_driver_sql(f"SELECT 1 FROM pg_stat_activity WHERE pid = {session}").first())
