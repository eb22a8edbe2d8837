"""Databases whose columns cannot hold every character: what they cannot hold is escaped, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pymysql
import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending, Lock, StateRecord, Unlock
from queuepool.stores.contract import NewJob
from queuepool.stores.factory import Stores
from tests.support.databases import USER
from tests.support.drivers import site_at
from tests.support.narrow import OF_COLUMNS, narrow_database
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import OURS, record, reserved

TEXT = "grün, Ω, 😀, nul \0, half \ud800"
#: what each encoding makes of it: of a column of MariaDB, of a whole database of PostgreSQL
NARROW = {
    "utf8mb3": "grün, Ω, \\U0001f600, nul \\x00, half \\ud800",
    "latin1": "grün, \\u03a9, \\U0001f600, nul \\x00, half \\ud800",
    "LATIN1": "grün, \\u03a9, \\U0001f600, nul \\x00, half \\ud800",
    "EUC_TW": "gr\\xfcn, \\u03a9, \\U0001f600, nul \\x00, half \\ud800",  # one that Python does not know
    "SQL_ASCII": "grün, Ω, 😀, nul \\x00, half \\ud800",
    "UTF8": "grün, Ω, 😀, nul \\x00, half \\ud800",
}


pytestmark = pytest.mark.every_store("encoding")


@pytest.fixture(params=NARROW)
def encoding(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def settings(encoding: str, request: pytest.FixtureRequest) -> Iterator[ConnectionSettings]:
    """A database with this encoding, and Laravel's tables in it."""
    server = request.getfixturevalue("mariadb" if encoding in OF_COLUMNS else "postgres")
    with narrow_database(server, encoding) as url:
        yield ConnectionSettings(url=url)


@pytest.fixture
def stores(settings: ConnectionSettings) -> Iterator[Stores]:
    with closing(Stores(settings)) as opened:
        yield opened


def test_of_a_failed_job_only_what_its_columns_cannot_hold_is_escaped(stores, encoding):
    data = {"name": "é Ω 😀"}
    raw = json.dumps({**json.loads(payload("a")), "data": data}, ensure_ascii=False).encode()
    [lease] = reserved(stores.queue, raw)
    identity = "a 😀"

    assert stores.queue.release(lease, 0.0, identity, "crashes")
    assert 1 == stores.queue.tallies(identity).crashes
    [lease] = stores.queue.reserve(["default"], OURS, 1).leases
    assert stores.queue.fail(lease, identity, {**record(lease, identity), "exception": TEXT})

    [failed] = stores.failed.page()
    assert NARROW[encoding] == failed.exception
    assert data == decode(failed.payload.encode(), 0).data
    assert failed == stores.failed.get(identity)
    assert stores.failed.retry(failed)
    assert data == decode(stores.queue.first("default", 1)[0], 0).data


def test_a_job_with_any_text_is_pushed_tracked_locked_and_run(settings, stores):
    lock, state = Lock("laravel_unique_job:app.ok:é Ω 😀", "owner", 60.0), StateRecord("é Ω 😀", b"{}", 60.0)
    with closing(Queue(settings)) as queue:
        queue.push("app.ok", {"name": "é Ω 😀"})
    assert stores.queue.push("locks", [NewJob(payload("b"), state)], 0.0, lock)
    assert not stores.queue.push("locks", new_jobs(payload("c")), 0.0, lock._replace(owner="another"))
    [lease] = stores.queue.reserve(["default"], OURS, 1).leases

    assert {"name": "é Ω 😀"} == decode(lease.receipt, 0).data
    assert b"{}" == stores.values.state(state.job_id)
    assert stores.queue.finish(lease, Ending(unlocks=(Unlock(lock.name, lock.owner),)))
    assert stores.queue.push("locks", new_jobs(payload("c")), 0.0, lock._replace(owner="another"))


def driver_connection(encoding: str, request: pytest.FixtureRequest) -> Any:
    """The application's own, as its driver opens it."""
    server = request.getfixturevalue("mariadb" if encoding in OF_COLUMNS else "postgres")
    name = f"narrow_{encoding.lower()}"
    if encoding in OF_COLUMNS:
        return pymysql.connect(unix_socket=server.socket, user=USER, database=name, charset="utf8mb4")
    return psycopg.connect(f"host={server.socket} user={USER} dbname={name}")


@pytest.mark.parametrize("encoding", ["latin1", "LATIN1", "SQL_ASCII"])
def test_a_job_with_any_text_is_pushed_in_the_applications_transaction(settings, encoding, request):
    with closing(Queue(settings)) as queue, closing(driver_connection(encoding, request)) as connection:
        connection.cursor().execute("SELECT 1")
        queue.within(connection).push("app.ok", {"name": "é Ω 😀"}, unique_id="é Ω 😀")
        connection.commit()

        assert {"name": "é Ω 😀"} == decode(queue.stores.queue.first("default", 1)[0], 0).data
        assert not queue.push("app.ok", unique_id="é Ω 😀")
        assert 1 == queue.clear()
        assert queue.push("app.ok", unique_id="é Ω 😀")


def test_what_is_set_aside_is_found_under_its_queue(stores):
    lease = reserved(stores.queue, payload("a"))[0]
    stores.queue.quarantine(lease._replace(receipt="{é Ω 😀".encode()), "odd")
    [entry] = stores.records.quarantined("default")

    assert entry.payload.startswith(b"{")
    assert stores.records.drop_quarantined("default", entry.id)
    assert [] == list(stores.records.quarantined("Ω 😀"))


def test_bytes_of_another_program_that_are_no_text_are_set_aside(postgres):
    with narrow_database(postgres, "SQL_ASCII") as url, closing(Stores(ConnectionSettings(url=url))) as stores:
        columns = "queue, payload, attempts, available_at, created_at"
        row = f"INSERT INTO jobs ({columns}) VALUES ('default', E'\\xff', 0, 0, 0)"
        stores.client.ask(lambda connection: connection.exec_driver_sql(row))
        [lease] = stores.queue.reserve(["default"], OURS, 1).leases

        assert b"\xff" == lease.receipt
        assert stores.queue.quarantine(lease, "utf-8")
        assert [b"\\xff"] == [entry.payload for entry in stores.records.quarantined("default")]


JOBS = """
import queuepool

@queuepool.job(tries=1)
def bad():
    with open("runs", "a") as runs:
        runs.write("x")
    raise ValueError("\U0001f600")
"""


@pytest.mark.by_turns("brand", "encoding")
@pytest.mark.parametrize(("brand", "encoding"), [("mariadb", "latin1"), ("postgres", "LATIN1")])
def test_a_job_with_one_try_whose_error_cannot_be_held_runs_once_and_its_error_is_kept(
    brand, encoding, request, tmp_path
):
    (tmp_path / "narrowjobs.py").write_text(JOBS)
    with narrow_database(request.getfixturevalue(brand), encoding) as url:
        site = site_at(url, tmp_path)
        site.queue.push("narrowjobs.bad")
        site.work("--modules", "narrowjobs", "--stop-when-empty")

        [failed] = site.queue.stores.failed.page()
        assert ("x", True) == ((tmp_path / "runs").read_text(), "ValueError: \\U0001f600" in failed.exception)
        site.queue.close()
