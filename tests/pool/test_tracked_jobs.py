"""Jobs that can be followed by their id, in real pools: their states, progress, results and errors."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from queuepool.errors import NotTracked, StoreError
from queuepool.jobs.current_job import Current
from queuepool.jobs.following import JobId, JobState
from queuepool.payload.envelope import decode
from queuepool.payload.lease import StateRecord
from tests.support.drivers import DATABASES, site_on
from tests.support.eventually import eventually
from tests.support.pools import Site

APP = """
import os, signal, time
from pathlib import Path
from queuepool import current, job

@job("report", track=600)
def report(gate, rows=7):
    for number in range(4):
        current().progress(number / 4, f"rows {number} of 4")
    while not Path(gate).exists():
        time.sleep(0.01)
    return {"rows": rows}

@job("returns", track=600)
def returns(kind):
    return {"none": None, "large": "x" * 70_000, "object": object(), "text": "ü"}[kind]

@job("fails", track=600, tries=2, backoff=300)
def fails(error="as asked"):
    raise ValueError(error)

@job("dies", track=600)
def dies():
    current().progress(0.5, "half")
    os.kill(os.getpid(), signal.SIGKILL)

@job("hangs", track=600, timeout=0.5)
def hangs():
    time.sleep(60)

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")

@job("mute", track=600, tries=2, backoff=0)
def mute():
    raise Mute

@job("odd", track=600)
def odd(fraction):
    current().progress(fraction)
"""


pytestmark = pytest.mark.every_store("tracked")


@pytest.fixture(params=["redis", *DATABASES])
def tracked(request: pytest.FixtureRequest, tmp_path) -> Iterator[Site]:
    """A store of each kind, with an application whose jobs are followed."""
    (tmp_path / "tracked.py").write_text(APP)
    with site_on(request.param, request) as found:
        yield found


def push(site: Site, name: str, *, delay: float = 0, tries: int = 1, **data: object) -> JobId:
    return site.queue.push(name, data, delay=delay, track=600, options={"maxTries": tries})


def state(job: JobId) -> JobState:
    found = job.job()
    assert found
    return found


def test_a_job_is_followed_from_its_push_to_its_result(tracked):
    gate = tracked.path / "gate"
    job = push(tracked, "report", gate=str(gate))
    before = datetime.now(UTC)
    later = push(tracked, "report", gate=str(gate), delay=60)
    after = datetime.now(UTC)
    assert ("queued", 0, "report", "default") == (
        state(job).state,
        state(job).attempts,
        job.job().name,
        job.job().queue,
    )
    assert "delayed" == state(later).state
    assert before + timedelta(seconds=59) < state(later).due < after + timedelta(seconds=61)

    with tracked.pool("--workers", "2", "--modules", "tracked") as pool:
        running = eventually(lambda: (found := state(job)).progress == 0.75 and found)  # it is shown step by step
        assert ("running", "rows 3 of 4", 1, os.uname().nodename) == (
            running.state, running.note, running.attempts, running.host,
        )  # fmt: skip
        assert running.pid in pool.workers()
        assert ", 75% rows 3 of 4" in tracked.run("status", *tracked.where, "--runtime-dir", pool.runtime).stdout
        with pytest.raises(TimeoutError, match=r"is running after 0\.1 s"):
            job.wait(0.1)
        gate.touch()
        done = job.wait(60)

    assert ("done", {"rows": 7}, 1.0, "", 1) == (done.state, done.result, done.progress, done.error, done.attempts)
    assert done.pushed <= done.since
    assert "delayed" == state(later).state


@pytest.mark.bad_input("B113")
def test_what_becomes_of_a_job_is_its_state(tracked):
    jobs = {kind: push(tracked, "returns", kind=kind) for kind in ("none", "large", "object", "text")}
    failed, released = push(tracked, "fails"), push(tracked, "fails", tries=2)
    dead, late = push(tracked, "dies"), push(tracked, "hangs")
    odd, mute = push(tracked, "odd", fraction=1.5), push(tracked, "mute", tries=2)
    with tracked.pool("--workers", "2", "--modules", "tracked", "--backoff", "30", "--max-crashes", "1") as pool:
        ended = {kind: job.wait(60) for kind, job in jobs.items()}
        assert "ValueError: as asked" == failed.wait(60).error
        eventually(lambda: "released" == state(released).state)
        lost, timed_out = dead.wait(60), late.wait(60)
        assert "progress must be a number from 0 to 1, not 1.5" in odd.wait(60).error

        assert "Mute: <its text cannot be shown: RuntimeError>" == mute.wait(60).error

    assert {"done"} == {one.state for one in ended.values()}
    assert (None, "ü") == (ended["none"].result, ended["text"].result)
    assert "70002 bytes of JSON, at most 65536 are kept" == ended["large"].result_problem
    assert "TypeError: no JSON for object" == ended["object"].result_problem
    assert "result not kept" in pool.log()
    assert "failed" == failed.job().state
    assert "ValueError: as asked" == state(released).error
    assert state(released).due > datetime.now(UTC)
    assert ("failed", 0.5, "half") == (lost.state, lost.progress, lost.note)
    assert lost.error.startswith("WorkerDied: dies (attempt 1): its worker died: signal 9")
    assert timed_out.error.startswith("TimedOut: hangs (attempt 1) ran past its deadline")


def test_a_job_whose_worker_is_killed_when_it_is_done_is_done(tracked):
    (tracked.path / "dies_done.py").write_text(
        "import os, signal\nfrom queuepool.events import JobProcessed\nfrom queuepool import on\n"
        "@on(JobProcessed)\ndef die(event):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    job = push(tracked, "returns", kind="text")
    with tracked.pool("--workers", "1", "--modules", "tracked,dies_done"):
        done = job.wait(60)

    assert ("done", None) == (done.state, done.result)
    assert "the worker died before the result was stored" == done.result_problem


@pytest.mark.thorough("the first test follows a job; these are other ends of one")
def test_a_job_that_is_stopped_at_once_waits_again(tracked):
    job = push(tracked, "report", gate=str(tracked.path / "never"))
    with tracked.pool("--workers", "1", "--modules", "tracked") as pool:
        eventually(lambda: "running" == state(job).state)
        pool.signal(signal.SIGQUIT)
        pool.wait()

    assert ("queued", 0) == (state(job).state, state(job).attempts)


@pytest.mark.thorough("stores/contract/test_locks_of_dropped_jobs.py retries a tracked job")
def test_a_retried_job_waits_again(tracked):
    job = push(tracked, "fails")
    with tracked.pool("--workers", "1", "--modules", "tracked"):
        assert "failed" == job.wait(60).state
    tracked.run("retry", *tracked.where, job)
    assert ("queued", "") == (state(job).state, state(job).error)


def test_a_pool_may_track_every_job(tracked):
    job = tracked.queue.push("returns", {"kind": "text"})
    assert job.job() is None
    with tracked.pool("--workers", "1", "--modules", "tracked", "--track", "600"):
        eventually(job.job)
        assert "ü" == job.wait(60).result


def test_a_job_is_tracked_as_its_handler_says_however_it_was_pushed(tracked):
    """A push by name says nothing of it, as a schedule's and Laravel's do not."""
    gate = tracked.path / "gate"
    push_plain = tracked.queue.push
    report, stopped = (push_plain("report", {"gate": str(gate)}) for _ in range(2))
    failed, released = (push_plain("fails", options={"maxTries": tries}) for tries in (1, 2))
    dead, late = push_plain("dies"), push_plain("hangs")
    with tracked.pool("--workers", "3", "--modules", "tracked", "--backoff", "30", "--max-crashes", "1") as pool:
        eventually(lambda: all((found := job.job()) and found.progress == 0.75 for job in (report, stopped)))
        assert "ValueError: as asked" == _over(failed).error
        eventually(lambda: (found := released.job()) and "released" == found.state)
        assert "WorkerDied" in _over(dead).error
        assert "TimedOut" in _over(late).error
        pool.signal(signal.SIGQUIT)
        pool.wait()
    assert {"queued"} == {state(report).state, state(stopped).state}
    gate.touch()
    tracked.work("--modules", "tracked")

    assert {("done", 7)} == {(state(job).state, state(job).result["rows"]) for job in (report, stopped)}


@pytest.mark.thorough("the first test follows a job; these are other ends of one")
def test_what_the_worker_has_kept_of_a_job_is_known_when_it_is_killed_after_it(tracked):
    (tracked.path / "dies_later.py").write_text(
        "import os, signal\nfrom queuepool.events import JobProcessed\nfrom queuepool import on\n"
        "@on(JobProcessed)\ndef die(event):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    job = tracked.queue.push("returns", {"kind": "text"})
    with tracked.pool("--workers", "1", "--modules", "tracked,dies_later"):
        assert "done" == _over(job).state


@pytest.mark.thorough("a test below has how a job is tracked, however it was pushed")
def test_a_job_that_a_schedule_pushes_keeps_its_track(tracked):
    (tracked.path / "ticking.py").write_text(
        "from queuepool import job\n@job('ticks', schedule='1s', track=600)\ndef ticks(): return 'told'\n"
        "@job('told', track=600)\ndef told(): return 'told'\n"
    )
    config = "[pool]\n[schedule:hourly]\nevery = 1s\njob = told\n"
    if tracked.connection.prefix:
        config += f"[connection]\nprefix = {tracked.connection.prefix}\n"
    with tracked.pool("--workers", "1", "--modules", "ticking", config=config) as pool:
        for name in ("ticks", "told"):
            [job_id, *_] = eventually(lambda name=name: re.findall(rf"job={name} queue=default id=(\S+)", pool.log()))
            told = eventually(lambda job_id=job_id: tracked.run("job", *tracked.where, job_id, check=False).stdout)
            assert f"id: {job_id}\n" in told
            assert "done" == tracked.queue.wait(job_id, 60).state


def _over(job: JobId) -> JobState:
    """What is known of it in the end; until it begins, nothing is."""
    eventually(job.job)
    return job.wait(60)


def test_a_running_state_that_is_not_renewed_counts_as_queued(tracked):
    """The whole host is gone: another one runs the job once its lease has ended."""
    stores = tracked.queue.stores
    job = push(tracked, "returns", kind="text")
    [lease] = stores.queue.reserve(["default"], stores.queue.join(), 1).leases
    for until, expected in ((stores.queue.now() + 30, "running"), (stores.queue.now() - 1, "queued")):
        facts = {"state": "running", "name": "returns", "queue": "default", "until": until, "pid": 1}
        stores.queue.show([lease], [StateRecord(job, json.dumps(facts).encode(), 60.0)])
        assert expected == state(job).state


def test_the_command_shows_and_waits(tracked):
    job, bad = push(tracked, "returns", kind="text"), push(tracked, "fails")
    said = tracked.run("job", *tracked.where, job)
    assert "state: queued\n" in said.stdout
    late = tracked.run("job", *tracked.where, job, "--wait", "--timeout", "0.1", check=False)
    assert (1, f"job {job} is queued after 0.1 s") == (late.returncode, late.stderr.strip().removeprefix("queuepool: "))
    tracked.work("--modules", "tracked")

    done = tracked.run("job", *tracked.where, job, "--wait", "--json")
    assert ("done", "ü") == (json.loads(done.stdout)["state"], json.loads(done.stdout)["result"])
    failed = tracked.run("job", *tracked.where, bad, "--wait", check=False)
    assert 1 == failed.returncode
    assert "error: ValueError: as asked" in failed.stdout


@pytest.mark.bad_input("B112")
def test_a_job_that_nobody_follows_is_said_to_be_so(site):
    plain = site.queue.push("returns", {"kind": "text"})
    for unknown in ("never-was", plain, ""):
        assert site.queue.job(unknown) is None
        with pytest.raises(NotTracked, match="nothing is known of job"):
            site.queue.wait(unknown, 1)
    said = site.run("job", *site.where, "never-was", "--wait", check=False)
    assert (1, 1) == (said.returncode, len(said.stderr.splitlines()))


def test_a_record_of_another_version_is_read_and_one_that_is_none_is_an_error(site):
    stores = site.queue.stores
    for text, expected in ((b'{"state": "done", "colour": "red"}', "done"), (b'["done"]', ""), (b"done", "")):
        job = site.queue.push("returns", {}, track=5)
        [lease] = stores.queue.reserve(["default"], stores.queue.join(), 1).leases
        stores.queue.show([lease], [StateRecord(job, text, 60.0)])
        if expected:
            assert expected == state(job).state
        else:
            with pytest.raises(StoreError, match="the stored state of job"):
                job.job()
        stores.queue.delete([lease])


def test_an_id_is_a_text(site):
    job = site.queue.push("returns", {"kind": "text"}, track=5)

    assert isinstance(job, str)
    assert f'["{job}"]' == json.dumps([job])
    assert str is type(pickle.loads(pickle.dumps(job)))
    assert {job: 1}[str(job)]


def test_an_encrypted_jobs_result_is_not_kept(tmp_path, site):
    from dataclasses import replace

    from queuepool.jobs.client import Queue

    (tmp_path / "tracked.py").write_text(APP)
    key = "base64:" + "A" * 43 + "="
    (tmp_path / "key.ini").write_text(f"[connection]\nurl = {site.connection.url}\nprefix = {site.connection.prefix}\n")
    os.chmod(tmp_path / "key.ini", 0o600)
    with (tmp_path / "key.ini").open("a") as file:
        file.write(f"app_key = {key}\n")
    queue = Queue(replace(site.connection, app_key=bytes(32)))
    job = queue.push("returns", {"kind": "text"}, track=600, encrypted=True)
    site.work("-c", str(tmp_path / "key.ini"), "--modules", "tracked")

    done = job.wait(60)
    assert ("done", None, "the job is encrypted") == (done.state, done.result, done.result_problem)
    queue.close()


@pytest.mark.bad_input("B114")
@pytest.mark.parametrize("fraction", [1.5, -0.1, True, "0.5", float("nan"), None])
def test_progress_is_a_number_from_0_to_1(fraction):
    running = Current(decode(b'{"id":"a","job":"do","data":[],"attempts":1}'), "default")

    with pytest.raises(ValueError, match=f"progress must be a number from 0 to 1, not {fraction!r}"):
        running.progress(fraction)
    running.progress(1, "all of it")
    assert (1.0, "all of it") == running.run[1:3]
