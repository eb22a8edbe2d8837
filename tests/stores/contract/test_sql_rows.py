"""Rows as other workers, clocks, schemas and texts leave them in Laravel's tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadPayload
from queuepool.payload.envelope import MAX_BYTES, decode
from queuepool.payload.lease import Tallies
from queuepool.stores.contract import MovedJob
from queuepool.stores.factory import Stores
from queuepool.stores.sql.statements import TAGS, mark_of
from tests.support.odd_tables import NULLABLE
from tests.support.own_connections import engine_of
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import (
    EMPTY,
    LONG,
    OURS,
    QUICK,
    RETRY_AFTER,
    THEIRS,
    Clock,
    attempts_of,
    each_settlement,
    failed_job,
    record,
    reserved,
    state,
)


@pytest.fixture
def at(sql: Stores) -> Clock:
    return Clock(sql.queue)


def write(sql: Stores, *lines: str) -> None:
    """Behind the store's back."""
    for line in lines:
        sql.client.ask(lambda connection, line=line: connection.exec_driver_sql(line))


@pytest.fixture
def dialect(sql: Stores) -> str:
    return str(sql.client.engine.dialect.name)


def test_the_payload_stays_as_it_was_pushed(sql):
    raw = payload("a", data={"empty": [], "big": 2**70, "text": 'é/"attempts":0}'})

    [lease] = reserved(sql.queue, raw)

    assert (raw, 1) == (lease.receipt, attempts_of(lease))


# Fences


@pytest.mark.every_store("database")
@each_settlement
def test_a_settlement_is_refused_when_laravel_has_reserved_the_job_since(sql, at, settle):
    [late] = reserved(sql.queue, payload("a"))
    write(sql, "UPDATE jobs SET attempts = 2, reserved_at = reserved_at + 91")
    before = state(sql)

    assert not settle(sql.queue, late)
    assert before == state(sql)


@pytest.mark.by_turns("database", "settle")
@each_settlement
def test_a_settlement_is_refused_when_another_worker_is_at_the_same_attempt(sql, at, settle):
    [late] = reserved(sql.queue, payload("a"))
    sql.queue.give_back([late])
    [theirs] = sql.queue.reserve(["default"], THEIRS, 1).leases
    before = state(sql)

    assert attempts_of(late) == attempts_of(theirs)
    assert not settle(sql.queue, late)
    assert before == state(sql)


@pytest.mark.by_turns("database", "settle")
@each_settlement
def test_a_lease_that_ended_is_still_settled_as_long_as_nobody_has_taken_the_job(sql, at, settle):
    [late] = reserved(sql.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)

    assert settle(sql.queue, late)


def test_what_laravel_has_taken_over_is_not_reclaimed(sql, at):
    reserved(sql.queue, payload("a"))
    write(sql, "UPDATE jobs SET attempts = 2, reserved_at = reserved_at + 91")

    assert [] == sql.queue.reclaim(["default"], OURS, 1_000.0, known=())
    assert 1 == sql.queue.sizes("default").reserved


def test_a_renewal_is_refused_when_laravel_has_reserved_the_job_since(sql, at):
    [late] = reserved(sql.queue, payload("a"))
    write(sql, "UPDATE jobs SET attempts = 2")

    assert [False] == sql.queue.renew([late])


def test_no_mark_looks_like_a_time_that_a_queue_has_seen_or_outgrows_a_signed_column():
    last = mark_of(TAGS - 1, 3)

    assert (2**30 - 1, "2004-01-10") == (last, f"{datetime.fromtimestamp(last, UTC):%Y-%m-%d}")
    assert {mark_of(tag, attempts) for tag in (0, 1) for attempts in range(4)} == set(range(8))


# Clocks


def test_a_delay_and_a_lease_are_rounded_up_to_whole_seconds(sql, at):
    at.advance(0.25)
    reserved(sql.queue, payload("leased"))
    sql.queue.push("default", new_jobs(payload("delayed")), delay=2.5)

    at.advance(2.5)
    assert [] == sql.queue.reserve(["default"], OURS, 2).leases
    at.advance(0.25)
    assert ["delayed"] == ids(sql.queue.reserve(["default"], OURS, 2).leases)
    at.advance(RETRY_AFTER - 2.75)
    assert [] == sql.queue.reserve(["default"], OURS, 2).leases
    at.advance(0.75)
    assert ["leased"] == ids(sql.queue.reserve(["default"], OURS, 2).leases)


@pytest.mark.bad_input("B064")
def test_what_was_reserved_in_the_future_is_leased_from_now_on(sql, at):
    reserved(sql.queue, payload("a"))
    write(sql, "UPDATE jobs SET reserved_at = reserved_at + 1000000")

    due = sql.queue.reserve(["default"], THEIRS, 1).next_due
    at.advance(RETRY_AFTER - 1)
    early = sql.queue.reserve(["default"], THEIRS, 1).leases
    at.advance(2.0)

    assert (pytest.approx(RETRY_AFTER, abs=1.0), []) == (due, early)
    assert ["a"] == ids(sql.queue.reserve(["default"], THEIRS, 1).leases)


def test_a_clock_that_is_a_little_ahead_is_let_be(sql, at):
    reserved(sql.queue, payload("a"))
    write(sql, "UPDATE jobs SET reserved_at = reserved_at + 4")

    assert pytest.approx(RETRY_AFTER + 4) == sql.queue.reserve(["default"], THEIRS, 1).next_due


def test_what_was_reserved_in_the_future_elsewhere_is_not_looked_at(sql, at):
    for queue in ("high", "default"):
        reserved(sql.queue, payload("a"), queue=queue)
    write(sql, "UPDATE jobs SET reserved_at = reserved_at + 1000000")

    sql.queue.reserve(["high"], THEIRS, 1)
    at.advance(RETRY_AFTER + 1)

    assert [1, 0] == [len(sql.queue.reserve([queue], THEIRS, 1).leases) for queue in ("high", "default")]


def test_of_a_job_that_was_never_suspected_the_tallies_are_stored_as_ever(sql):
    sql.queue.release(reserved(sql.queue, payload("a"))[0], 0.0, "a", "crashes")

    found = sql.client.ask(lambda connection: connection.exec_driver_sql("SELECT value FROM cache").scalars().all())
    assert ['{"crashes": 1}'] == found


@pytest.mark.bad_input("B170")
def test_tallies_that_are_no_numbers_count_as_none_in_a_row_too(sql):
    sql.queue.release(reserved(sql.queue, payload("a"))[0], 0.0, "a", "crashes")
    text = '{"exceptions": [], "crashes": "x", "suspects": 1.5, "others": 1}'
    write(sql, f"UPDATE cache SET value = '{text}'")

    assert Tallies() == sql.queue.tallies("a")


def test_tallies_are_forgotten_when_they_are_over(sql):
    sql.queue.release(reserved(sql.queue, payload("a"))[0], 0.0, "a", "crashes")
    there = sql.queue.tallies("a")
    write(sql, "UPDATE cache SET expiration = 1000")

    assert (Tallies(crashes=1), Tallies()) == (there, sql.queue.tallies("a"))
    sql.queue.release(reserved(sql.queue, payload("a"))[0], 0.0, "a", "exceptions")
    assert Tallies(exceptions=1) == sql.queue.tallies("a")


# Schemas


#: by the database: what the column is made, the most that it holds
COUNTS: dict[str, tuple[list[str], int]] = {
    "sqlite": ([], 65535),
    "postgresql": ([], 32767),
    "mariadb": (["ALTER TABLE jobs MODIFY attempts tinyint unsigned NOT NULL"], 255),
}


@pytest.mark.fault("F72")
@pytest.mark.parametrize("begun", [1, 0], ids=["at the end", "one before"])
def test_a_job_whose_attempts_are_at_the_columns_end_is_set_aside_and_the_queue_flows_on(sql, dialect, begun):
    alter, most = COUNTS[dialect]
    write(sql, *alter)
    sql.queue.push("default", new_jobs(payload("a"), payload("b")))
    write(sql, f'UPDATE jobs SET attempts = {most - 1 + begun} WHERE payload LIKE \'%%"id":"a"%%\'')

    reservation = sql.queue.reserve(["default"], OURS, 1)

    assert [("default", "attempts")] == reservation.quarantined
    again = reservation.leases or sql.queue.reserve(["default"], OURS, 1).leases
    assert ["b"] == ids(again)
    assert [payload("a")] == [entry.payload for entry in sql.records.quarantined("default")]


def test_a_job_may_be_tried_as_often_as_laravels_newest_column_counts(sql, dialect):
    sql.queue.push("default", new_jobs(payload("a")))
    most = 32767 if dialect == "postgresql" else 65535 if dialect == "sqlite" else 255
    write(sql, f"UPDATE jobs SET attempts = {most - 2}")

    assert [most - 1] == [attempts_of(lease) for lease in sql.queue.reserve(["default"], OURS, 1).leases]


def test_a_row_that_is_moved_keeps_what_others_have_written_beside_it(sql, dialect):
    kind = "STORED" if dialect == "postgresql" else "VIRTUAL"
    computed = f"twice integer GENERATED ALWAYS AS (attempts * 2) {kind}"
    write(sql, "ALTER TABLE jobs ADD COLUMN tenant varchar(20)", f"ALTER TABLE jobs ADD COLUMN {computed}")
    sql.queue.push("default", new_jobs(payload("a")))
    write(sql, "UPDATE jobs SET tenant = 'acme', attempts = 3")
    [job] = sql.queue.walk("default", ("ready",)).page(9)

    assert [True] == sql.queue.move("default", [MovedJob(job, job.payload)], "high")
    shown = "SELECT queue, tenant, attempts, twice FROM jobs"
    rows = sql.client.ask(lambda connection: connection.exec_driver_sql(shown).all())
    assert [("high", "acme", 3, 6)] == [tuple(row) for row in rows]


ROW = "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default', {}, 0, 1, 1)"


def weeded(sql: Stores) -> list[Any]:
    """What a worker makes of a queue: the ids of the jobs, the reasons for the rest."""
    found = []
    while leases := sql.queue.reserve(["default"], OURS, 1).leases:
        try:
            found.append(decode(leases[0].receipt, leases[0].attempts).id)
        except BadPayload as error:
            sql.queue.quarantine(leases[0], error.reason)
            found.append(error.reason)
    return found


@pytest.mark.bad_input("B064")
@pytest.mark.parametrize("odd", ["NULL", "''"])
def test_a_payload_of_nothing_is_set_aside_and_the_queue_flows_on(sql, dialect, odd):
    write(sql, *NULLABLE[dialect], ROW.format(odd))
    sql.queue.push("default", new_jobs(payload("b")))

    assert ["json", "b"] == weeded(sql)
    assert [("json", b"")] == [(entry.reason, entry.payload) for entry in sql.records.quarantined("default")]


@pytest.mark.bad_input("B064")
def test_bytes_that_are_no_text_are_set_aside_as_they_are(sql, dialect):
    if dialect != "sqlite":
        pytest.skip("the others hold no such thing")
    write(sql, ROW.format("x'7b80ff007d'"), ROW.format("CAST(x'7b80ff7d' AS TEXT)"))
    sql.queue.push("default", new_jobs(payload("b")))

    assert ["utf-8", "utf-8", "b"] == weeded(sql)
    entries = list(sql.records.quarantined("default"))
    assert [b"{\x80\xff\x00}", b"{\x80\xff}"] == [entry.payload for entry in entries]
    assert sql.records.requeue("default", entries[0].id)
    assert b"{\x80\xff\x00}" == sql.queue.sizes("default").oldest


@pytest.mark.bad_input("B059")
def test_a_payload_above_the_limit_is_set_aside_by_the_database_and_the_queue_flows_on(sql, dialect):
    """No worker could read it without all that memory: it would die of it, and the next one as well."""
    if dialect in ("mysql", "mariadb"):
        pytest.skip("its usual max_allowed_packet is that limit")
    large = payload("large", data="x" * MAX_BYTES)
    sql.queue.push("default", new_jobs(large))
    sql.queue.push("default", new_jobs(payload("b")))

    found = sql.queue.reserve(["default"], OURS, 9)

    assert ([payload("b")], [("default", "too-large")]) == ([one.receipt for one in found.leases], found.quarantined)
    assert [("too-large", large)] == [(one.reason, one.payload) for one in sql.records.quarantined("default")]


# Texts


@pytest.mark.every_store("database")
@pytest.mark.fault("F72")
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "💥 é", "%s %(x)s :name ? '"], ids=ascii)
def test_whatever_an_exception_says_is_recorded(sql, text):
    [lease] = reserved(sql.queue, payload("a"))

    assert sql.queue.fail(lease, "a", {**record(lease), "exception": text})

    readable = text.replace("\0", "\\x00").replace("\ud800", "\\ud800")
    assert [readable] == [found.exception for found in sql.failed.page()]
    assert EMPTY == sql.queue.sizes("default")


def test_two_jobs_of_one_uuid_have_a_record_each(sql):
    first, second = failed_job(sql), failed_job(sql)

    assert (first.id, "a") == (second.id, "a")
    assert ["a-2", "a"] == [found.id for found in sql.failed.page()]


def test_a_queue_may_be_called_anything_that_is_text(sql):
    name = "%s':name\\💥"
    sql.queue.push(name, new_jobs(payload("a")))

    assert [name] == [lease.queue for lease in sql.queue.reserve(["default", name], OURS, 1).leases]


@pytest.mark.thorough("10,001 jobs; test_sizes_count_and_a_clear_drops_one_queue_alone")
@pytest.mark.every_store("database")
def test_a_clear_counts_what_it_drops_piece_by_piece(sql):
    many = 10_001
    sql.queue.push("default", new_jobs(*[b"x"] * many))

    assert many == sql.queue.clear("default")


@contextmanager
def locking(database: ConnectionSettings, statement: str) -> Iterator[None]:
    """Another program holds the locks of this statement; unlike ours, the server lets it be idle meanwhile."""
    with engine_of(database.url).execution_options(isolation_level="READ COMMITTED").begin() as connection:
        connection.exec_driver_sql(statement)
        yield


def test_a_row_that_another_session_has_locked_is_passed_by(sql, database, dialect):
    if dialect == "sqlite":
        pytest.skip("locks no rows")
    sql.queue.push("default", new_jobs(payload("a"), payload("b")))
    with locking(database, "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE"):
        began = time.monotonic()
        assert ["b"] == ids(sql.queue.reserve(["default"], OURS, 2).leases)
        assert time.monotonic() - began < QUICK

    assert ["a"] == ids(sql.queue.reserve(["default"], OURS, 2).leases)


def test_what_another_session_has_locked_is_looked_for_again_soon_but_not_all_the_time(sql, database, dialect, at):
    if dialect == "sqlite":
        pytest.skip("locks no rows")
    sql.queue.push("default", new_jobs(payload("a")))
    at.advance(5.0)
    due: list[float | None] = []
    with locking(database, "SELECT id FROM jobs FOR UPDATE"):
        began = time.monotonic()
        while len(due) < 10:
            due.append(sql.queue.reserve(["default"], OURS, 1).next_due)
            sql.queue.wait(["default"], LONG)
        took = time.monotonic() - began

    assert {0.01} == set(due)
    assert 10 * 0.01 <= took < LONG  # not one wait went on to its end


def test_a_delayed_job_that_comes_during_a_wait_ends_it_when_it_is_due(sql, database):
    with closing(Stores(database)) as other:
        push = threading.Timer(0.1, other.queue.push, ("default", new_jobs(payload("a")), 1.0))
        push.start()
        began = time.monotonic()
        sql.queue.wait(["default"], timeout=30.0)
        took = time.monotonic() - began
        push.join()

    assert took < QUICK
