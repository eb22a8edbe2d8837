"""Queue names are compared by their bytes; MySQL's collations would take many of them for one."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.sql.migrate import migrate
from tests.support.databases import DatabaseServer
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, record

#: one name to utf8mb4_unicode_ci
NAMES = ["emails", "Emails", "emails ", "émails", "EMAILS"]


@pytest.fixture
def filled(built: Stores) -> Stores:
    for name in NAMES:
        built.queue.push(name, new_jobs(payload(name)))
    return built


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("name", NAMES, ids=["small", "capital", "space", "accent", "upper"])
def test_a_worker_takes_the_jobs_of_its_own_queue_alone(filled, name):
    assert [name] == ids(filled.queue.reserve([name], OURS, 10).leases)
    assert [] == filled.queue.reserve([name], OURS, 10).leases


def test_one_that_serves_several_takes_them_in_its_order(filled):
    leases = filled.queue.reserve(["EMAILS", "emails "], OURS, 10).leases

    assert [("EMAILS", "EMAILS"), ("emails ", "emails ")] == [
        (lease.queue, *ids([lease])) for lease in leases
    ]  # fmt: skip


def test_sizes_count_and_a_clear_drops_one_queue_alone(filled):
    assert [1] * 5 == [filled.queue.sizes(name).total for name in NAMES]
    assert 1 == filled.queue.clear("Emails")
    assert [1, 0, 1, 1, 1] == [filled.queue.sizes(name).total for name in NAMES]


def test_each_of_them_is_listed(filled):
    assert sorted(NAMES) == filled.queue.queues()


def test_what_is_set_aside_is_found_under_its_own_queue(filled):
    [lease] = filled.queue.reserve(["Emails"], OURS, 1).leases
    filled.queue.quarantine(lease, "odd")
    [entry] = filled.records.quarantined("Emails")

    assert [] == list(filled.records.quarantined("emails"))
    assert [0, 1] == [filled.queue.sizes(name).quarantined for name in ("emails", "Emails")]
    assert not filled.records.drop_quarantined("emails", entry.id)
    assert filled.records.drop_quarantined("Emails", entry.id)


def test_what_is_reclaimed_is_of_these_queues_alone(filled):
    filled.queue.reserve(["Emails"], OURS, 1)

    assert [] == filled.queue.reclaim(["emails"], OURS, 60.0, [])
    assert ["Emails"] == ids(filled.queue.reclaim(["Emails"], OURS, 60.0, []))


def test_no_queue_waits_for_a_job_of_another(filled):
    filled.queue.clear("emails")
    filled.queue.push("Emails", new_jobs(payload("later")), 60.0)

    assert None is filled.queue.reserve(["emails"], OURS, 1).next_due


def test_failed_jobs_keep_the_name_of_their_queue(filled):
    [lease] = filled.queue.reserve(["émails"], OURS, 1).leases
    filled.queue.fail(lease, "a", record(lease))

    assert ["émails"] == [failed.queue for failed in filled.failed.page()]


@pytest.mark.parametrize("column", ["utf8mb3", "latin1"])
def test_the_tables_may_have_an_older_encoding(mariadb_url, mariadb: DatabaseServer, column):
    stores = Stores(ConnectionSettings(url=mariadb_url))
    migrate(stores.client)
    mariadb.execute(mariadb_url, f"ALTER TABLE jobs MODIFY queue varchar(191) CHARACTER SET {column} NOT NULL")
    for name in NAMES:
        stores.queue.push(name, new_jobs(payload(name)))

    assert [[name] for name in NAMES] == [ids(stores.queue.reserve([name], OURS, 9).leases) for name in NAMES]
    stores.close()


FLOOD = """
    INSERT INTO jobs (queue, payload, attempts, available_at, created_at)
    SELECT CASE WHEN seq % 100 = 0 THEN 'Emails' ELSE 'other' END, '{}', 0, 0, 0 FROM seq_1_to_100000
"""


def test_the_index_is_still_used(mariadb_url, mariadb: DatabaseServer):
    """10^5 rows; 1,000 of them are in a queue that the collation takes for ours."""
    stores = Stores(ConnectionSettings(url=mariadb_url))
    migrate(stores.client)
    mariadb.execute(mariadb_url, FLOOD, "ANALYZE TABLE jobs")
    stores.queue.push("emails", new_jobs(payload("a")))
    near = stores.queue._table._statements.near.compile(stores.client.engine)
    asked = {**near.params, "name": "emails", "most": 17}
    [plan] = stores.client.ask(lambda c: c.exec_driver_sql(f"EXPLAIN {near}", asked).mappings().all())

    assert ("jobs_queue_index", True) == (plan["key"], int(plan["rows"]) < 5_000)
    assert ["a"] == ids(stores.queue.reserve(["emails"], OURS, 1).leases)
    stores.close()


# The names of the cache's keys


def test_a_second_queue_of_that_name_cannot_be_paused_unseen(built):
    built.control.pause("Emails")
    merges = built.settings.url.startswith("mariadb")  # it has one key for both
    with pytest.raises(StoreError, match="Emails") if merges else nullcontext():
        built.control.pause("emails")

    assert ({"Emails"} if merges else {"Emails", "emails"}) == built.control.read(["Emails", "emails"]).paused


def test_a_queue_is_not_continued_by_the_name_of_another(built):
    built.control.pause("Emails")

    assert not built.control.resume("emails")
    assert {"Emails"} == built.control.read(["Emails"]).paused


@pytest.mark.thorough("70,000 of them; test_many_paused_queues")
@pytest.mark.every_store("connection")
def test_more_queues_than_a_database_takes_parameters_are_asked_for_their_pauses(built):
    names = [f"queue-{number}" for number in range(7_000 if is_redis(built.settings.url) else 70_000)]
    built.control.pause(names[-1])

    assert {names[-1]} == built.control.read(names).paused
