"""A pool with ``keep_done`` has a record of each attempt, whatever ended it; people find and count them."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import chain
from typing import Any

import pytest

from queuepool.payload.envelope import Envelope, encode
from queuepool.payload.options import EXPIRES
from queuepool.search.ended import EndedAttempt, attempts_of, read
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site

LATE = """
from queuepool import job

@job("late", expires="1m")
def late():
    pass

@job("tracked", expires="1m", track=60)
def tracked():
    pass
"""
KEEP = ("--keep-done", "1h")


def attempts(site: Site, job_id: str) -> list[EndedAttempt]:
    return attempts_of(site.queue.stores, ["default"], job_id)


def outcomes(site: Site, job_id: str) -> list[tuple[int | None, str]]:
    return [(one.attempts, one.outcome) for one in attempts(site, job_id)]


def kept(site: Site) -> list[EndedAttempt]:
    return read(chain.from_iterable(site.queue.stores.attempts.pages("default")))


def said(pool: RunningPool, *words: str) -> str:
    return pool.site.run(*words, *pool.site.where, "--runtime-dir", pool.runtime).stdout


def as_json(pool: RunningPool, *words: str) -> Any:
    return json.loads(said(pool, *words, "--json"))


def test_each_attempt_has_one_record_whatever_ended_it(site):
    quick = [site.push(tag=f"quick{number}") for number in range(100)]
    retried = site.push("raise", maxTries=2, times=1)
    failed, twice, slow = site.push("raise", maxTries=1), site.queue.push("twice", {}), site.queue.push("slow", {})
    with site.pool("--workers", "2", *KEEP) as pool:
        eventually(lambda: 100 + 2 + 1 + 3 + 2 == len(kept(site)))
        assert [[(1, "done")]] * 100 == [outcomes(site, job_id) for job_id in quick]
        assert [(1, "released"), (2, "done")] == outcomes(site, retried)
        assert [(1, "failed")] == outcomes(site, failed)
        assert [(1, "lost"), (2, "released"), (3, "failed")] == outcomes(site, twice)
        assert [(1, "timed out"), (2, "timed out")] == outcomes(site, slow)
        assert ["released", "failed"] == [one.then for one in attempts(site, slow)]

        ran = {(note["id"], note["pid"]) for note in site.trail(event="start", mode="ok")}
        assert ran == {(one.id, one.pid) for job_id in quick for one in attempts(site, job_id)}
        assert {"default"} == {one.pool for one in kept(site)}
        # Of those that were done, but not yet deleted, when their worker died, the board knows no times.
        assert {"done"} >= {one.outcome for one in kept(site) if one.seconds is None}
        assert 1.0 <= (attempts(site, slow)[0].seconds or 0) < 60

        count = {row["value"]: row["jobs"] for row in as_json(pool, "jobs", "--state", "done", "--by", "outcome")}
        assert count == Counter(one.outcome for one in kept(site))
        assert "2" == said(pool, "jobs", "--state", "done", "--error", "as asked", "--name", "twice", "--count").strip()
        [found] = as_json(pool, "jobs", "--state", "done", "--where", "tag=quick7")
        assert (quick[7], "done", "done") == (found["id"], found["state"], found["outcome"])
        assert [] == as_json(pool, "jobs", "--state", "done", "--until", "1h")

        job = as_json(pool, "job", retried)
        assert ("done", 2, "the attempts that have ended") == (job["state"], job["attempts"], job["found"])
        assert [(1, "released"), (2, "done")] == [(one["attempt"], one["outcome"]) for one in job["ended"]]
        text = said(pool, "job", twice).splitlines()
        assert "state: failed" in text
        assert ["attempt 1: lost, then released", "attempt 2: released", "attempt 3: failed"] == [
            line.partition(", began")[0] for line in text if line.startswith("attempt ")
        ]


def test_jobs_side_by_side_have_a_record_each(site):
    pushed = [site.queue.push("add", {"left": number, "right": 1}) for number in range(60)]
    failed = site.push("raise", maxTries=1)
    with site.pool("--workers", "1", "--concurrency", "20", *KEEP):
        eventually(lambda: 61 == len(kept(site)))

    assert [[(1, "done")]] * 60 == [outcomes(site, job_id) for job_id in pushed]
    assert [(1, "failed")] == outcomes(site, failed)


@pytest.mark.thorough("the first test has workers that die behind quick jobs")
def test_what_the_steward_deletes_behind_a_slow_job_was_not_lost_and_has_its_times(site):
    """Its worker asks for the same when the slow job is over, or cannot any more."""
    quick = [site.push(tag=f"quick{number}") for number in range(6)]
    slow, killed = site.push("sleep", seconds=0.5), site.push("kill", maxTries=1)
    more = [site.push() for _ in range(9)]
    with site.pool("--workers", "1", "--reserve-ahead", "8", *KEEP):
        eventually(lambda: 17 <= len({one.id for one in kept(site)}))
        found = kept(site)

    assert Counter([*quick, slow, killed, *more]) == Counter(one.id for one in found)
    assert {killed} == {one.id for one in found if one.outcome != "done"}
    assert [] == [one.id for one in found if one.is_lost]
    assert [] == [one.id for one in found if one.id in {*quick, slow} and one.began is None]


@pytest.mark.thorough("unit/test_attempt_records.py has its record, test_expired_jobs.py such a job")
def test_a_skipped_job_is_recorded_as_skipped_whether_it_is_tracked_or_not(site):
    (site.path / "late.py").write_text(LATE)
    late = Envelope(options={EXPIRES: 0.001}, created_at=time.time() - 9)
    for skipped, lanes in (2, ()), (4, ("--concurrency", "5")):
        for name in ("late", "tracked"):
            site.queue.push_raw(encode(name, {}, late)[1])
        with site.pool("--workers", "1", "--modules", "late", *lanes, *KEEP):
            eventually(lambda expected=skipped: expected == len(kept(site)))
    assert {("skipped", "done")} == {(one.outcome, one.then) for one in kept(site)}
    assert ["late", "late", "tracked", "tracked"] == sorted(one.name for one in kept(site))


def test_a_stop_leaves_no_done_job_without_a_record(site):
    with site.pool("--workers", "1", *KEEP):
        pushed = [site.push() for _ in range(50)]
        eventually(lambda: site.trail(event="end", id=pushed[10]))

    done = {note["id"] for note in site.trail(event="end")}
    assert done == {one.id for one in kept(site)}


def test_a_lone_worker_keeps_records_too(site):
    pushed = site.push()
    site.work(*KEEP)

    assert [(1, "done")] == outcomes(site, pushed)


def test_without_the_setting_nothing_is_kept(site, server):
    site.push()
    site.work()

    assert [] == kept(site)
    assert [] == server.keys("*attempts*")


@pytest.mark.thorough("a line of text for what has no record; it takes a lost host")
def test_an_attempt_of_a_lost_host_is_a_gap(site):
    """Nothing of it is left that could tell; and no other pool has heard of it for long enough to miss it."""
    gate, config = site.path / "gate", "[connection]\nretry_after = 2\n"
    pushed = site.push("until", gate=str(gate))
    lost = RunningPool(site, site.flags("--workers", "1", "--runtime-dir", str(site.path / "lost"), *KEEP), config)
    eventually(lambda: site.trail(event="start", id=pushed))
    lost.kill_all()
    gate.touch()
    with site.pool("--workers", "1", *KEEP, config=config) as pool:
        eventually(lambda: [(2, "done")] == outcomes(site, pushed))
        text = said(pool, "job", pushed)

    assert "attempt 1: no record: a lost host ran it" in text
