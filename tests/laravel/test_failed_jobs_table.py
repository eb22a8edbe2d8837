"""Both programs share ``failed_jobs``: each lists, retries and drops what the other recorded."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from queuepool.errors import BadPayload
from queuepool.payload.envelope import decode
from queuepool.stores.factory import Stores
from tests.support.samples import new_jobs
from tests.support.shared_tables import REPORT, Shared, made

pytestmark = made("sqlite-13", "postgres-8", "mariadb-13")
#: both programs look at a clock between two reads of ours
SLACK = 3.0


def failed_there(shared: Shared, **data: object) -> dict[str, Any]:
    """A row that Laravel wrote."""
    shared.queue.push(REPORT, {"fail_times": 1, **data})
    shared.peer.run("work", once=True, tries=1)
    return shared.rows("failed_jobs")[-1]


def failed_here(shared: Shared, **data: object) -> dict[str, Any]:
    """A row that we wrote."""
    shared.queue.push(REPORT, data)
    shared.fail()
    return shared.rows("failed_jobs")[-1]


def texts(row: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in row.items()}


def test_what_laravel_recorded_is_listed_here(shared):
    row = failed_there(shared, id=7)

    [record] = shared.stores.failed.page()

    assert (row["uuid"], "App\\Jobs\\Report", "default", "default", row["payload"], row["exception"]) == (
        record.id, record.name, record.queue, record.connection, record.payload, record.exception
    )  # fmt: skip
    assert 1 == shared.stores.failed.count()


def test_what_laravel_recorded_is_tried_again_here_with_all_its_tries(shared):
    row = failed_there(shared, id=7)

    assert shared.stores.failed.retry(shared.stores.failed.get(row["uuid"]))

    _, found = shared.reserved()
    assert (row["uuid"], 1, 7) == (found.uuid, found.attempts, found.data["id"])
    assert [] == shared.rows("failed_jobs")


def test_what_laravel_recorded_is_dropped_here_by_its_id_or_its_age(shared):
    first, second, third = (failed_there(shared, id=number)["uuid"] for number in range(3))
    shared.change(f"UPDATE failed_jobs SET failed_at = '2020-01-01 12:00:00' WHERE uuid = '{second}'")

    assert [True] == shared.stores.failed.drop([shared.stores.failed.get(first).key])
    assert [second] == [key.id for key in shared.stores.failed.older_than(time.time() - 3600)]
    assert 1_577_880_000 == shared.stores.failed.get(second).failed_at
    assert [second, third] == [key.id for key in shared.stores.failed.older_than(time.time() + SLACK)]


def test_what_we_recorded_is_listed_there_and_tried_again_as_a_first_attempt(shared):
    row = failed_here(shared, id=7, name="é/")

    listed = shared.peer.run("failed")["rows"]
    said = shared.peer.run("retry", row["uuid"])["said"]
    shared.peer.run("work", once=True)

    assert [row["uuid"]] == [one["id"] for one in listed]
    assert (texts(row)["failed_at"], row["payload"]) == (listed[0]["failed_at"], listed[0]["payload"])
    assert "pushed back" in said
    assert [({"id": 7, "name": "é/"}, 1)] == [(run["data"], run["attempts"]) for run in shared.runs()]
    assert [] == shared.rows("failed_jobs")


def test_what_we_recorded_and_laravel_put_back_is_run_here(shared):
    row = failed_here(shared, id=7, name="é/")

    shared.peer.run("retry", row["uuid"])

    _, found = shared.reserved()
    assert (row["uuid"], 1, {"id": 7, "name": "é/"}) == (found.id, found.attempts, found.data)


@pytest.mark.thorough("one job is tried again there in the test above; two records of one id are in the contract")
def test_of_two_jobs_with_one_id_laravel_tries_both_again(shared):
    failed_here(shared, id=7)
    again = shared.rows("failed_jobs")[0]["payload"]
    shared.store.push("default", new_jobs(again.encode()))
    shared.fail()

    ids = [row["id"] for row in shared.peer.run("failed")["rows"]]
    said = [shared.peer.run("retry", identity)["said"] for identity in ids]

    assert [f"{ids[1]}-2", ids[1]] == ids
    assert [True, True] == ["pushed back" in line for line in said]
    assert 2 == len(shared.rows("jobs"))


# What could not be a job


@pytest.mark.by_turns("raw", "back")
@pytest.mark.bad_input("B064")
@pytest.mark.parametrize(
    ("raw", "back"),
    [
        # What it cannot decode is null from then on.
        ("not json", b"null"),
        ('{"job":"J","data":"é","maxTries":"many"}', rb'{"job":"J","data":"\u00e9","maxTries":"many"}'),
    ],
)
def test_what_could_not_be_a_job_is_listed_there_and_does_no_harm_when_it_is_put_back(shared, raw, back):
    shared.store.push("default", new_jobs(raw.encode()))
    [lease] = shared.reserve()
    shared.store.quarantine(lease, "json")
    [row] = shared.peer.run("failed")["rows"]

    shared.peer.run("retry", row["id"])

    assert (raw, "queuepool.errors.BadPayload: not a job: json") == (row["payload"], row["exception"])
    assert [] == shared.rows("failed_jobs")
    [again] = shared.reserve()
    assert back == again.receipt
    with pytest.raises(BadPayload):
        decode(again.receipt)


# The queue in Redis, its failed jobs in the database


@pytest.fixture
def apart(shared, redis_url):
    """Our queue; Laravel's own is in the database."""
    stores = Stores(replace(shared.connection, url=redis_url, failed_url=shared.connection.url))
    yield stores
    stores.close()


def fail_in_redis(shared: Shared, stores: Stores) -> tuple[dict[str, Any], bytes]:
    shared.queue.push(REPORT, {"id": 7})
    raw = shared.rows("jobs")[0]["payload"].encode()
    shared.change("DELETE FROM jobs")
    stores.queue.push("default", new_jobs(raw))
    replace(shared, stores=stores).fail()
    stores.forwarder.forward()
    return shared.rows("failed_jobs")[0], raw


def test_a_job_that_failed_in_redis_is_a_row_that_laravel_tries_again(shared, apart):
    row, raw = fail_in_redis(shared, apart)

    shared.peer.run("retry", row["uuid"])
    shared.peer.run("work", once=True)

    assert raw[:-2] + b"1}" == row["payload"].encode()
    assert [({"id": 7}, 1)] == [(run["data"], run["attempts"]) for run in shared.runs()]
    assert (0, []) == (apart.queue.sizes("default").total, shared.rows("failed_jobs"))


@pytest.mark.thorough("test_failed_jobs_in_another_store retries one")
def test_a_job_that_failed_in_redis_is_tried_again_there_by_us(shared, apart):
    row, raw = fail_in_redis(shared, apart)

    assert apart.failed.retry(apart.failed.get(row["uuid"]))

    assert raw == apart.queue.sizes("default").oldest
    assert [] == shared.rows("failed_jobs")
