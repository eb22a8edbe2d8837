"""For how long what is kept of a job's steps stays, and jobs that end though it cannot be written."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from queuepool.payload.kept_step import CURSOR, StepsEnd
from queuepool.payload.lease import Ending
from tests.stores.contract.test_kept_steps import AGAIN, STEPS
from tests.support.drivers import connection_of, opened
from tests.support.kept_attempts import kept, noted
from tests.support.samples import payload
from tests.support.store_contract import reserved


def aged(sql, days, job="a"):
    """What is kept of this job was written so many days ago."""
    rows = sql.client.tables.queuepool_steps
    older = rows.update().where(rows.c.job == job).values(written=rows.c.written - days * 86400)
    sql.client.transaction(lambda connection: connection.execute(older))


def test_fresh_ones_are_not_pruned(sql):
    [lease] = reserved(sql.queue, payload("a"))
    assert sql.steps.keep(lease, "a", STEPS)
    aged(sql, 29)

    assert 0 == sql.steps.prune()
    assert STEPS == sql.steps.of_job("a")


def test_old_ones_are_pruned(sql):
    [lease] = reserved(sql.queue, payload("a"))
    assert sql.steps.keep(lease, "a", STEPS)
    aged(sql, 31)

    assert 2 == sql.steps.prune()
    assert {} == sql.steps.of_job("a")


def test_the_first_steps_of_a_job_that_has_gone_on_are_not_pruned(sql):
    [lease] = reserved(sql.queue, payload("a"))
    assert sql.steps.keep(lease, "a", STEPS)
    aged(sql, 31)
    assert sql.steps.keep(lease, "a", {f"{CURSOR}rows": b"7"})

    assert 0 == sql.steps.prune()
    assert {*STEPS, f"{CURSOR}rows"} == {*sql.steps.of_job("a")}


@pytest.mark.every_store("database")
@pytest.mark.parametrize("end", AGAIN.values(), ids=AGAIN)
def test_each_attempt_keeps_them_for_longer(sql, end):
    [lease] = reserved(sql.queue, payload("a"))
    assert sql.steps.keep(lease, "a", STEPS)
    aged(sql, 31)
    assert end(sql.queue, lease._replace(steps=StepsEnd("a")))

    assert 0 == sql.steps.prune()
    assert STEPS == sql.steps.of_job("a")


def test_a_job_that_is_delayed_for_longer_finds_them(sql):
    [lease] = reserved(sql.queue, payload("a"))
    assert sql.steps.keep(lease, "a", STEPS)
    assert sql.queue.release(lease._replace(steps=StepsEnd("a", delay=90 * 86400.0)), 90 * 86400.0, "a")
    aged(sql, 119)
    assert 0 == sql.steps.prune()
    aged(sql, 2)
    assert 2 == sql.steps.prune()


def test_a_job_that_is_delayed_for_longer_finds_them_on_redis(request, server):
    with opened(connection_of("redis", request)) as stores:
        [lease] = reserved(stores.queue, payload("a"))
        assert stores.steps.keep(lease, "a", STEPS)
        assert stores.queue.release(lease._replace(steps=StepsEnd("a", delay=90 * 86400.0)), 90 * 86400.0, "a")

        [key] = [key for key in server.keys("*") if b"steps:a" in key]
        assert 119 < server.ttl(key) / 86400 <= 120


@pytest.mark.by_turns("records")
@pytest.mark.every_store("database")
@pytest.mark.parametrize(
    "end", [*AGAIN.values(), lambda store, lease: store.finish(lease, Ending())], ids=[*AGAIN, "finish"]
)
@pytest.mark.parametrize("records", [False, True], ids=["alone", "with a record"])
def test_a_job_ends_though_its_steps_cannot_be_written(sql, end, records):
    """The table may be gone, or the right to it."""
    [lease] = reserved(sql.queue, payload("a"))
    assert sql.steps.keep(lease, "a", STEPS)
    lease = lease._replace(steps=StepsEnd("a", places=((f"{CURSOR}rows", b"7"),)))
    renamed = text("alter table queuepool_steps rename to away")
    sql.client.transaction(lambda connection: connection.execute(renamed))
    try:
        assert end(sql.queue, noted(lease) if records else lease)
        assert not records or 1 == len(kept(sql))
    finally:
        back = text("alter table away rename to queuepool_steps")
        sql.client.transaction(lambda connection: connection.execute(back))
