"""A reserve that deletes what is done, in databases: only what is still its worker's, and no row is met twice."""

from __future__ import annotations

from typing import Any

import pytest

from queuepool.stores.factory import Stores
from queuepool.stores.sql.statements import mark_of
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import EMPTY, OURS, QUEUES, RETRY_AFTER, THEIRS, Clock, attempts_of, reserved


@pytest.fixture
def at(sql: Stores) -> Clock:
    return Clock(sql.queue)


def write(sql: Stores, line: str) -> None:
    """Behind the store's back."""
    sql.client.ask(lambda connection: connection.exec_driver_sql(line))


def rows(sql: Stores) -> list[Any]:
    return sql.client.ask(lambda connection: connection.exec_driver_sql("SELECT * FROM jobs ORDER BY id").all())


@pytest.mark.parametrize(
    "change",
    [
        "attempts = 2",
        f"available_at = {mark_of(THEIRS, 1)}",
        f"available_at = {mark_of(OURS, 2)}",
        "available_at = 1000000",
    ],
    ids=["another attempt", "another worker", "a later attempt of ours", "Laravel's"],
)
def test_a_done_job_that_another_has_is_refused_and_left_as_it_is(sql, at, change):
    lost, kept = reserved(sql.queue, payload("a"), payload("b"))
    write(sql, f"UPDATE jobs SET {change} WHERE id = {lost.row.id}")
    before = rows(sql)[:1]
    sql.queue.push("default", new_jobs(payload("c")))

    reservation = sql.queue.reserve(["default"], OURS, 5, [lost, kept])

    assert ([lost], ["c"]) == (reservation.refused, ids(reservation.leases))
    assert before == rows(sql)[:1]


def test_a_done_job_that_is_free_again_is_refused_and_taken_once_more(sql, at):
    lost, kept = reserved(sql.queue, payload("a"), payload("b"))
    sql.queue.give_back([lost])

    reservation = sql.queue.reserve(["default"], OURS, 5, [lost, kept])

    assert ([lost], ["a"]) == (reservation.refused, ids(reservation.leases))
    assert [1] == list(map(attempts_of, reservation.leases))


def test_a_done_job_whose_lease_has_ended_is_deleted_and_not_taken_once_more(sql, at):
    done = reserved(sql.queue, payload("a"), payload("b"))
    at.advance(RETRY_AFTER + 1)

    reservation = sql.queue.reserve(["default"], OURS, 5, done)

    assert ([], []) == (reservation.refused, reservation.leases)
    assert EMPTY == sql.queue.sizes("default")


def test_of_a_job_that_was_done_twice_only_the_attempt_that_is_held_counts(sql, at):
    [first] = reserved(sql.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)
    [second] = sql.queue.reserve(["default"], OURS, 1).leases

    assert [first] == sql.queue.reserve(["default"], OURS, 1, [second, first]).refused
    assert EMPTY == sql.queue.sizes("default")


def test_done_jobs_are_deleted_whichever_queues_they_are_of_and_the_first_queues_are_served_first(sql, at):
    done = [*reserved(sql.queue, payload("a")), *reserved(sql.queue, payload("b"), queue="high")]
    sql.queue.push("default", new_jobs(payload("c"), payload("d"), payload("e")))
    sql.queue.push("high", new_jobs(payload("f")))

    reservation = sql.queue.reserve(QUEUES, OURS, 3, done)

    assert ([], ["f", "c", "d"]) == (reservation.refused, ids(reservation.leases))
    assert (1, 2) == (sql.queue.sizes("default").ready, sql.queue.sizes("default").reserved)


def test_what_cannot_be_counted_further_is_set_aside_though_jobs_are_deleted_and_taken_with_it(sql, at):
    done = reserved(sql.queue, payload("a"))
    sql.queue.push("default", new_jobs(payload("b"), payload("c")))
    write(sql, f"UPDATE jobs SET attempts = {sql.queue._table.most_attempts} WHERE id = {done[0].row.id + 1}")

    reservation = sql.queue.reserve(["default"], OURS, 5, done)

    assert (["c"], [("default", "attempts")]) == (ids(reservation.leases), reservation.quarantined)
    assert (1, 1) == (sql.queue.sizes("default").reserved, sql.queue.sizes("default").quarantined)
