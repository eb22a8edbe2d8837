"""A real pool and a real Laravel work on one database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.shared_tables import REPORT, Shared, made

pytestmark = made("sqlite-13", "postgres-8", "mariadb-13")
CACHE = "laravel_cache"
POOL = f"[connection]\nrestart_key = {CACHE}illuminate:queue:restart\n"
FEWEST, PART, READY = 300, 50, -1


@pytest.fixture
def site(shared, tmp_path):
    return Site(shared.connection, tmp_path, shared.queue)


def test_a_pool_runs_what_laravel_pushes_and_obeys_its_restart(shared, site):
    push = shared.peer.run
    flags = ("--queue", "mails,default", "--workers", "1", "--tries", "2", "--sleep", "0.2", "--unknown-retry", "0.2")
    with site.pool(*flags, config=POOL) as pool:
        push("push-string", REPORT, '{"id": 7}')
        push("push-string", REPORT, '{"id": 8}', delay=1)
        push("push-object", "a@b.c", "vip é", queue="mails")
        push("push-string", REPORT, '{"wrong": 9}', queue="mails")
        eventually(lambda: not shared.rows("jobs"))
        [before] = pool.workers()

        push("restart", cache_prefix=CACHE)

        eventually(lambda: len(pool.workers()) == 1 and before not in pool.workers())
        push("push-string", REPORT, '{"id": 10}')
        eventually(lambda: site.trail(id=10))

    assert [7, 8, 10] == [line["id"] for line in site.trail(mode="Report", attempt=1)]
    assert [("a@b.c", "vip é")] == [(line["to"], line["template"]) for line in site.trail(mode="SendMail", attempt=1)]
    [failed] = shared.peer.run("failed")["rows"]
    assert ("default", "mails") == (failed["connection"], failed["queue"])


@pytest.mark.thorough("by calls of the store, test_jobs_table finishes one there")
def test_an_attempt_that_failed_in_a_worker_of_ours_is_finished_by_laravel(shared, site):
    handler = f"@queuepool.job({REPORT!r})\ndef fail(id): raise ValueError('told to')\n"
    (site.path / "failing.py").write_text(f"import queuepool\n{handler}")
    shared.queue.push(REPORT, {"id": 7}, options={"maxTries": 2})
    site.work("--url", shared.connection.url, "--modules", "failing", "--max-jobs", "1", check=False)

    shared.peer.run("work", once=True)

    assert [({"id": 7}, 2)] == [(run["data"], run["attempts"]) for run in shared.runs()]
    assert ([], []) == (shared.rows("jobs"), shared.rows("failed_jobs"))


def test_a_mixed_fleet_runs_every_job_exactly_once(shared, site):
    with fleet(shared, site), shared.peer.serving() as talk:
        pushed = 0
        # Laravel sleeps for a second when it finds SQLite locked.
        while pushed < FEWEST or not (theirs(shared) and ours(site)):
            shared.queue.bulk([(REPORT, {"id": number}) for number in range(pushed, pushed + PART)])
            for number in range(pushed + PART, pushed + 2 * PART):
                talk.ask("push", now=1_700_000_000, queue="default", raw=raw(number))
            pushed += 2 * PART
        eventually(lambda: pushed == len(theirs(shared) | ours(site)), within=60)

    assert {1} == set((theirs(shared) + ours(site)).values())
    assert [] == shared.rows("failed_jobs")
    # Laravel leaves a job reserved that it has run and could not delete, as when it finds SQLite locked.
    assert left(shared) <= theirs(shared).keys()


@contextmanager
def fleet(shared: Shared, site: Site) -> Iterator[None]:
    """Two workers of Laravel's and two of ours, all of them ready."""
    first, second = (shared.peer.staying("work", sleep=0.02, queue=f"{name},default") for name in ("one", "two"))
    with first, second, site.pool("--workers", "2", "--sleep", "0.2"):
        for name in ("one", "two"):
            shared.queue.push(REPORT, {"id": READY}, queue=name)
        eventually(lambda: 2 == len(shared.runs()))
        yield


def raw(number: int) -> str:
    return json.dumps({"uuid": f"u{number}", "displayName": "J", "job": REPORT, "data": {"id": number}})


def theirs(shared: Shared) -> Counter[int]:
    return Counter(run["data"]["id"] for run in shared.runs() if run["data"]["id"] != READY)


def ours(site: Site) -> Counter[int]:
    return Counter(line["id"] for line in site.trail(mode="Report"))


def left(shared: Shared) -> set[int]:
    return {json.loads(row["payload"])["data"]["id"] for row in shared.rows("jobs")} - {READY}
