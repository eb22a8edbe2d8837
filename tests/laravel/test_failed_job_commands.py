"""The commands for failed jobs work on a MariaDB whose clock does not show UTC."""

from __future__ import annotations

import time

import pytest

from tests.support.pools import Site
from tests.support.shared_tables import REPORT, made

pytestmark = made("mariadb-13")


@pytest.fixture
def abroad(mariadb, shared):
    """Laravel says its times in UTC, and lets the server think that they are its own."""
    mariadb.execute(mariadb.url, "SET GLOBAL time_zone = '+05:30'")
    yield shared
    mariadb.execute(mariadb.url, "SET GLOBAL time_zone = DEFAULT")


def test_both_tell_the_same_of_when_a_job_failed(abroad):
    began = int(time.time())
    abroad.queue.bulk([(REPORT, {"fail_times": 1}), (REPORT, {})])
    abroad.peer.run("work", once=True)
    abroad.fail()

    ended = time.time()

    ours, theirs = abroad.stores.failed.page()
    assert began <= theirs.failed_at <= ours.failed_at <= ended + 1
    told = [row["failed_at"] for row in abroad.peer.run("failed")["rows"]]
    assert [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.failed_at)) for one in (ours, theirs)] == told


def test_the_commands_on_failed_jobs_serve_those_of_laravel_too(abroad, tmp_path):
    site = Site(abroad.connection, tmp_path, abroad.queue)
    url = ("--url", abroad.connection.url)
    ids = [abroad.queue.push(REPORT, {"id": number, "fail_times": 1}) for number in range(4)]
    abroad.peer.run("work", stop_when_empty=True, tries=1)
    abroad.change(f"UPDATE failed_jobs SET failed_at = failed_at - INTERVAL 25 HOUR WHERE uuid = '{ids[2]}'")
    abroad.change(f"UPDATE failed_jobs SET failed_at = failed_at - INTERVAL 23 HOUR WHERE uuid = '{ids[3]}'")

    listed = site.run("failed", *url).stdout
    said = [site.run(*words, *url).stdout for words in (("retry", ids[0]), ("forget", ids[1]), ("prune-failed",))]

    assert all(identity in listed for identity in ids)
    assert ["1 job put back\n", "dropped 1 failed job\n", "dropped 1 failed job on connection default\n"] == said
    assert [ids[3]] == [row["uuid"] for row in abroad.rows("failed_jobs")]
    site.run("flush", *url)
    site.work(check=False)
    assert [(0, 1)] == [(line["id"], line["attempt"]) for line in site.trail(mode="Report")]
    assert ([], []) == (abroad.rows("jobs"), abroad.rows("failed_jobs"))
