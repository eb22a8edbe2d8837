"""Both programs write the same rows, in the tables of each Laravel and in ours, and read each other's."""

from __future__ import annotations

import time

import pytest

from tests.support.samples import new_jobs
from tests.support.shared_tables import BRANDS, EVERY, MAIL, REPORT, Shared, made

OURS = [f"{brand}-ours" for brand in BRANDS]
pytestmark = made(*EVERY, *OURS)
RAW = '{"uuid":"u","displayName":"J","job":"J","data":[]}'
T = 1_800_000_000


def job_rows(shared: Shared) -> list[dict[str, object]]:
    return [{key: value for key, value in row.items() if key != "id"} for row in shared.rows("jobs")]


def test_a_string_job_of_laravel_comes_with_its_data(shared):
    shared.peer.run("push-string", REPORT, '{"id": 7, "tags": [], "name": "é/"}', queue="high")
    [row] = shared.rows("jobs")

    lease, found = shared.reserved("high")

    assert (REPORT, "App\\Jobs\\Report", 1, row["payload"].encode()) == (
        found.name, found.options.display_name, found.attempts, lease.receipt
    )  # fmt: skip
    assert ({"id": 7, "tags": [], "name": "é/"}, (), True) == (found.data, found.warnings, found.id == found.uuid)


@pytest.mark.thorough("test_a_mixed_fleet_runs_every_job_exactly_once has Laravel run them")
def test_jobs_of_ours_are_run_by_laravel_in_their_order(shared):
    shared.queue.bulk([(REPORT, {"id": number, "tags": [1.5, None, "é"]}) for number in range(5)])
    shared.queue.push_object(MAIL, {"to": "a@b.c", "template": "vip é"}, queue="mails")

    shared.peer.run("work", stop_when_empty=True, queue="mails,default")

    mail, *reports = shared.runs()
    assert {"job": MAIL, "to": "a@b.c", "template": "vip é", "attempts": 1, "queue": "mails"} == mail
    assert [{"id": number, "tags": [1.5, None, "é"]} for number in range(5)] == [run["data"] for run in reports]
    assert [] == shared.rows("jobs")


def test_a_job_that_we_push_is_the_one_that_laravel_would_have_pushed(shared, talk):
    shared.store.clock = f"{T}.7"
    shared.store.push("default", new_jobs(RAW.encode()))
    talk.ask("push", now=T, queue="default", raw=RAW)

    ours, theirs = job_rows(shared)
    assert theirs == ours


def test_a_failed_row_of_ours_is_the_one_that_laravel_would_have_written(shared):
    began = int(time.time())
    shared.peer.run("push-string", REPORT, '{"fail_times": 9, "name": "é/"}', queue="high")
    pushed = shared.rows("jobs")[0]["payload"]
    shared.peer.run("work", once=True, queue="high")
    shared.store.push("high", new_jobs(pushed.replace('"uuid":"', '"uuid":"x').encode()))
    shared.fail("high")

    theirs, ours = shared.rows("failed_jobs")

    assert theirs.keys() == ours.keys()
    assert {**theirs, "uuid": f"x{theirs['uuid']}", "payload": ours["payload"]} == {
        **ours, "id": theirs["id"], "exception": theirs["exception"], "failed_at": theirs["failed_at"]
    }  # fmt: skip
    assert pushed == theirs["payload"] == ours["payload"].replace('"uuid":"x', '"uuid":"')
    assert ("RuntimeException: told", "ValueError: told to\n") == (theirs["exception"][:22], ours["exception"])
    assert type(theirs["failed_at"]) is type(ours["failed_at"])
    assert len(str(theirs["failed_at"])) == len(str(ours["failed_at"]))
    last, first = shared.stores.failed.page()
    assert began <= first.failed_at <= last.failed_at <= time.time() + 1


@pytest.mark.thorough("test_cache_table compares the same row")
def test_a_restart_row_of_ours_is_the_one_that_laravel_would_have_written(shared):
    began = int(time.time())
    theirs = shared.peer.run("restart", cache_prefix="")["value"]
    [before] = shared.rows("cache")

    ours = shared.stores.control.restart()

    [row] = shared.rows("cache")
    assert theirs < ours
    assert {**before, "value": f"i:{ours};", "expiration": row["expiration"]} == row
    assert 0 <= row["expiration"] - before["expiration"] <= time.time() + 1 - began
