"""Rows of ``jobs`` whose jobs are parked: they stay as they are, in a queue that nobody serves."""

from __future__ import annotations

from typing import Any

from queuepool.payload.lease import NOTHING
from queuepool.payload.limits import NO_PART, PlaceAsked, holding
from queuepool.stores.factory import Stores
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, attempts_of

ONE = PlaceAsked("import", NO_PART, 1)


def asked(sql: Stores, *statements: str) -> list[tuple[Any, ...]]:
    """The rows that the last of these returns."""

    def work(connection: Any) -> list[tuple[Any, ...]]:
        *first, last = statements
        for statement in first:
            connection.exec_driver_sql(statement)
        answer = connection.exec_driver_sql(last)
        return [tuple(row) for row in answer] if answer.returns_rows else []

    return sql.client.transaction(work)


def entered(sql: Stores, queue: str = "default") -> Any:
    """The next job of the queue, if it is let in; ``None``: it is parked."""
    [lease] = sql.queue.reserve([queue], OURS, 1).leases
    lease = holding(lease)
    return lease if sql.limits.enter(lease, ids([lease])[0], [ONE]).is_in else None


def test_a_parked_row_keeps_what_others_have_written_beside_it(sql):
    asked(sql, "ALTER TABLE jobs ADD COLUMN tenant varchar(20)")
    sql.queue.push("default", new_jobs(payload("a"), payload("b")))
    asked(sql, "UPDATE jobs SET tenant = 'acme', created_at = 7")
    before = asked(sql, "SELECT id FROM jobs ORDER BY id")
    first = entered(sql)
    assert entered(sql) is None
    assert ["default"] == sql.queue.queues()
    assert 1 == sql.queue.sizes("default").total
    sql.queue.finish(first, NOTHING)

    [lease] = sql.queue.reserve(["default"], OURS, 1).leases
    assert 1 == attempts_of(lease)
    assert [(before[1][0], "acme", 7)] == asked(sql, "SELECT id, tenant, created_at FROM jobs")


def test_a_table_that_was_emptied_by_hand_leaves_nothing_that_stands_in_the_way(sql):
    sql.queue.push("default", new_jobs(payload("a"), payload("b")))
    entered(sql)
    entered(sql)
    [(number,)] = asked(sql, "SELECT max(id) FROM jobs")
    asked(sql, "DELETE FROM jobs")
    sql.queue.push("default", new_jobs(payload("c"), payload("d")))
    asked(sql, "UPDATE jobs SET id = id + 100", f"UPDATE jobs SET id = {number} WHERE id = {number + 102}")

    assert entered(sql) is None  # the lease of a lasts
    assert entered(sql) is None
    assert payload("d") == sql.limits.find("default", "d").payload
    assert 2 == sql.limits.unpark("default")
    assert {"c", "d"} == {*ids(sql.queue.reserve(["default"], OURS, 2).leases)}


def test_a_queue_with_a_long_name_may_have_parked_jobs(sql):
    queue = "q" * 200
    sql.queue.push(queue, new_jobs(payload("a"), payload("b")))
    first = entered(sql, queue)
    assert entered(sql, queue) is None
    sql.queue.finish(first, NOTHING)

    assert entered(sql, queue)
