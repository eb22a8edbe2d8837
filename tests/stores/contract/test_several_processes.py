"""Several processes work on one queue, by the store's own clock."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import create_engine

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.stores.factory import Stores
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.statements import Statements
from queuepool.stores.sql.tables import USUAL
from tests.support.drivers import CLUSTERS, PATIENCE, SPREAD, connection_of, opened
from tests.support.eventually import eventually
from tests.support.other_process import answers, started
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import LONG, OURS, QUICK, attempts_of, reserved

_IN_TURN = pytest.mark.thorough("there they look for a free id one after the other, or as PostgreSQL's do")
_OTHERS = [pytest.param(name, marks=_IN_TURN) for name in ("redis", "sqlite", "mariadb", *CLUSTERS, SPREAD, "sentinel")]
#: an hour ahead, and an hour behind
WRONG = ["+1h", "-1h"]


@pytest.mark.thorough("test_wait: a push by another connection ends it")
def test_a_push_by_another_process_ends_a_wait(connection, store):
    store.reserve(["default"], OURS, 1)
    other = started(connection, "push", "default", "a", 0)

    store.wait(["default"], timeout=LONG)
    noticed = time.monotonic()

    # The other process has yet to connect when its clock starts; without its push the whole wait would go by.
    assert noticed - other.answer() < QUICK
    assert ["a"] == ids(store.reserve(["default"], OURS, 1).leases)


# Slow: each process is a Python of its own that connects, on each store.
@pytest.mark.fault("F70")
@pytest.mark.parametrize("processes", [3, pytest.param(6, marks=pytest.mark.thorough("three meet each other too"))])
def test_several_processes_run_every_job_exactly_once(connection, store, processes):
    each = 250 if connection.url.startswith("sqlite") else 80
    names = [f"job-{number}" for number in range(each * processes)]
    store.push("default", new_jobs(*(payload(name) for name in names)))

    others = [started(connection, "drain", "default", 1 + number % 3) for number in range(processes)]

    assert Counter(names) == Counter(name for taken in answers(others) for name in taken)
    assert 0 == store.sizes("default").total


@pytest.mark.parametrize("connection", ["postgres", *_OTHERS], indirect=True)
def test_jobs_with_one_id_that_fail_in_three_processes_at_once_are_all_recorded(connection, built):
    built.queue.push("default", new_jobs(*[payload("a")] * 15))

    others = [started(connection, "fail", "default", "a") for _ in range(3)]

    assert 15 == sum(answers(others))
    ids = {row.id for row in built.failed.page()}
    assert 15 == len(ids) == len(list(built.failed.page()))
    assert {"a", "a-2", "a-3"} < ids  # after a few numbers an id is drawn by lot


@pytest.fixture(params=["postgres", "mariadb"])
def served(request: pytest.FixtureRequest) -> ConnectionSettings:
    """A database that has a clock of its own; SQLite's is the process's."""
    if shutil.which("faketime") is None:
        pytest.skip("needs faketime")
    # It leaves these behind by its pid, and does not begin where a process of that number did.
    for left in Path("/dev/shm").glob("*faketime_s??_*"):
        if not psutil.pid_exists(int(left.name.rpartition("_")[2])):
            left.unlink(missing_ok=True)
    return connection_of(request.param, request)


@pytest.fixture
def hosted(served: ConnectionSettings) -> Iterator[Stores]:
    with opened(served) as stores:
        yield stores


@pytest.mark.every_store("served")
@pytest.mark.fault("F41")
@pytest.mark.by_turns("clock")
@pytest.mark.parametrize("clock", WRONG)
def test_who_has_a_wrong_clock_takes_no_leased_and_no_delayed_job(served, hosted, clock):
    reserved(hosted.queue, payload("leased"))
    hosted.queue.push("default", new_jobs(payload("delayed")), delay=1_000.0)

    taken, next_due, its_clock = started(served, "look", "default", before=["faketime", "-f", clock]).answer()

    assert 3_000 < abs(its_clock - time.time()) < 4_000
    assert [] == taken
    assert 60 < next_due <= 91


@pytest.mark.fault("F41")
@pytest.mark.thorough("the other way round, by three programs more")
@pytest.mark.every_store("served")
@pytest.mark.by_turns("clock")
@pytest.mark.parametrize("clock", WRONG)
def test_what_who_has_a_wrong_clock_delays_and_reserves_is_due_when_it_should_be(served, hosted, clock):
    wrong = ["faketime", "-f", clock]
    started(served, "push", "default", "leased", 0, before=wrong).answer()
    started(served, "look", "default", before=wrong).answer()
    leased_for = hosted.queue.reserve(["default"], OURS, 1).next_due
    started(served, "push", "high", "delayed", 50, before=wrong).answer()
    delayed_for = hosted.queue.reserve(["high"], OURS, 1).next_due

    assert 60 < leased_for <= 91
    assert 30 < delayed_for <= 51


def test_a_wait_ends_when_a_delayed_job_is_due(sql: Stores):
    sql.queue.clock = repr(sql.queue.now())  # it stands still until all know when the job is due
    sql.queue.push("default", new_jobs(payload("a")), delay=1.0)
    due = sql.queue.reserve(["default"], OURS, 1).next_due
    assert due
    sql.queue.clock = ""
    began = time.monotonic()

    sql.queue.wait(["default"], timeout=20.0)

    assert time.monotonic() - began < due + QUICK
    # The database's clock may be a millisecond behind ours.
    assert ["a"] == ids(eventually(lambda: sql.queue.reserve(["default"], OURS, 1).leases, within=QUICK))


@pytest.mark.fault("F69")
@pytest.mark.parametrize("statement", ["", "SELECT pg_sleep(60)"], ids=["between two statements", "in a statement"])
def test_a_worker_that_is_killed_inside_of_the_reserving_transaction_had_taken_nothing(sql, database, statement):
    dialect = sql.client.engine.dialect.name
    if statement and dialect != "postgresql":
        pytest.skip("PostgreSQL's own statement")
    sql.queue.push("default", new_jobs(payload("a")))
    taking = started(database, "hold", "default", statement)
    eventually(lambda: not is_there_for_others(database, dialect))

    taking.kill()
    (lease,) = eventually(lambda: sql.queue.reserve(["default"], OURS, 1).leases)
    assert 1 == attempts_of(lease)


def is_there_for_others(database: ConnectionSettings, dialect: str) -> bool:
    """Without waiting for long: whether anybody else could take the job now."""
    lock = "BEGIN IMMEDIATE" if dialect == "sqlite" else "SELECT id FROM jobs FOR UPDATE SKIP LOCKED"

    def look(connection: Any) -> bool:
        found = connection.exec_driver_sql(lock)
        if dialect != "sqlite":
            return found.first() is not None
        connection.exec_driver_sql("ROLLBACK")
        return True

    try:
        with closing(Stores(database, reply_timeout=0.2 if dialect == "sqlite" else PATIENCE)) as others:
            return bool(others.client.ask(look))
    except StoreDown:
        return False  # SQLite: the whole file is locked


@pytest.mark.fault("F73")
@pytest.mark.parametrize(
    ("driver", "version", "expected"),
    [
        ("postgresql+psycopg", (12, 0), "SKIP LOCKED"),
        ("mysql+pymysql", (8, 0, 1), "SKIP LOCKED"),
        ("mysql+pymysql", (5, 7, 44), "FOR UPDATE"),
        ("mariadb+pymysql", (10, 6, 0), "SKIP LOCKED"),
        ("mariadb+pymysql", (10, 5, 9), "FOR UPDATE"),
    ],
)
def test_a_server_that_cannot_skip_locked_rows_is_asked_for_plain_locks(driver, version, expected):
    dialect = create_engine(f"{driver}://").dialect
    dialect.server_version_info = version
    statement = Statements(USUAL.jobs, dialect, Clock(dialect), 90.0, 65535).choose

    assert str(statement.compile(dialect=dialect)).rstrip().endswith(expected)
