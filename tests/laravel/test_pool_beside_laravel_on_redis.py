"""A real pool and a real Laravel work on one Redis, also through a network that loses replies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from queuepool.payload.envelope import MAX_BYTES
from tests.support.eventually import eventually
from tests.support.lossy_proxy import LossyProxy

RESTART_KEY = "laravel_database_laravel_cache:illuminate:queue:restart"


def test_what_laravel_pushed_runs_here_object_and_string_jobs_alike(site, peer):
    peer.run("push-object", "a@b.c", "welcome")
    peer.run("push-string", "App\\Jobs\\Report@build", '{"id": 7}')
    site.work()

    assert ("a@b.c", "welcome", 1) == tuple(
        site.trail(mode="SendMail")[0][key] for key in ("to", "template", "attempt")
    )
    assert [7] == [line["id"] for line in site.trail(mode="Report")]
    assert 0 == peer.run("size")["size"]


@pytest.mark.thorough("test_a_job_that_goes_to_and_fro_counts_every_attempt, by calls of the store")
@pytest.mark.fault("F65")
def test_an_attempt_that_failed_there_is_finished_here(site, peer):
    peer.run("push-string", "App\\Jobs\\Report@build", '{"id": 7, "fail_times": 1}')
    peer.run("work", once=True, tries=3)
    site.work("--tries", "3")

    assert [2] == [line["attempt"] for line in site.trail(mode="Report")]


@pytest.mark.fault("F65")
def test_an_attempt_that_failed_here_is_finished_there(site, peer):
    (site.path / "reports.py").write_text(
        "from queuepool import current, job\n"
        "@job('App\\\\Jobs\\\\Report@build', tries=3)\n"
        "def report(id, fail_times=0):\n"
        "    raise RuntimeError('not here')\n"
    )
    site.queue.push("App\\Jobs\\Report@build", {"id": 9})
    site.run("work", *site.flags("--modules", "reports", "--once", "--tries", "3"))
    peer.run("work", stop_when_empty=True, tries=3)

    assert [(9, 2)] == [(line["data"]["id"], line["attempts"]) for line in peer.lines() if "data" in line]


@pytest.mark.thorough("a pool obeys one in the tests of databases; test_shared_redis_queue sees its key")
def test_laravels_restart_broadcast_replaces_our_workers(site, peer):
    config = f"[connection]\nrestart_key = {RESTART_KEY}\n"
    with site.pool("--workers", "2", config=config) as pool:
        before = set(pool.workers())
        assert [RESTART_KEY] == peer.run("restart", cache_prefix="laravel_cache")["keys"]
        eventually(lambda: len(now := set(pool.workers())) == 2 and not now & before)


@pytest.mark.fault("F53")
def test_a_reservation_whose_reply_was_lost_is_taken_back_at_once(site, redis_socket, tmp_path):
    with LossyProxy(redis_socket, tmp_path) as proxy:
        site.push("ok")
        proxy.lose_the_next_reply(to=str(MAX_BYTES).encode())  # only a reserve says how large a payload may be
        lossy = replace(site, connection=replace(site.connection, url=f"unix://{proxy.path}"))
        done = lossy.work()

    assert 0 == done.returncode
    assert "store lost" in done.stderr
    assert [1] == [line["attempt"] for line in site.trail(event="start")]
    assert 0 == site.queue.size()
