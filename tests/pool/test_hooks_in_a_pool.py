"""Hooks around jobs and pushes in a real pool: those that hang, and what the steward says of killed attempts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from queuepool import connect
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.pools import Site

JOBS = """
import os, signal
from queuepool import around, current, job, on_push
from tests.support.poolapp import hang_in_c, note

@job("ok")
def ok():
    note(event="job", extra=current().extra)

@job("deleted")
def deleted():
    note(event="job")
    current().delete()
    raise RuntimeError("after it had asked to be deleted")

@job("killed")
def killed():
    note(event="job", attempt=current().attempts)
    os.kill(os.getpid(), signal.SIGKILL)
"""
LISTENER = """
from queuepool import on
from queuepool.events import JobLost, StewardStopping
from tests.support.poolapp import note

@on(JobLost)
def lost(event):
    note(event="lost", job=event.job.name, attempt=event.job.attempt, **event.killed._asdict())

@on(StewardStopping)
def stopping(event):
    note(event="stopping")
"""


def write(site: Site, hooks: str = "") -> None:
    (site.path / "hooked.py").write_text(JOBS + hooks)


@pytest.mark.bad_input("B156")
def test_a_hook_that_hangs_before_a_job_is_ended_at_the_jobs_deadline(site):
    write(site, "@around\ndef bad(job):\n    hang_in_c()\n    yield\n")
    site.queue.push("ok", options={"timeout": 1, "maxTries": 1})
    with site.pool("--modules", "hooked", "--workers", "1") as pool:
        eventually(lambda: "job failed" in pool.log())

    assert "job timed out" in pool.log()
    assert ([], 0) == (site.trail(event="job"), site.queue.size())


@pytest.mark.bad_input("B156")
@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["ok", "deleted"])
def test_a_hook_that_hangs_after_a_job_that_is_over_does_not_run_it_again(site, name):
    write(site, "@around\ndef bad(job):\n    try:\n        yield\n    finally:\n        hang_in_c()\n")
    site.queue.push(name, options={"timeout": 3, "maxTries": 3})  # in which the job itself ends on a busy machine
    with site.pool("--modules", "hooked", "--workers", "1") as pool:
        eventually(lambda: "process died" in pool.log() and 0 == site.queue.size())
    assert (1, False) == (len(site.trail(event="job")), "job failed" in pool.log())


@pytest.mark.fault("F17")
@pytest.mark.parametrize("body", ["os.fork()\n    yield", "yield\n    os.fork()"], ids=["before", "after"])
def test_a_hook_that_forks_settles_the_job_once(site, body):
    write(site, f"@around\ndef bad(job):\n    {body}\n")
    site.queue.push("ok")
    log = site.work("--modules", "hooked").stderr

    assert (1, 0) == (log.count("job done"), site.queue.size())


@pytest.mark.fault("F84")
def test_the_steward_says_of_a_killed_attempt_when_it_was_and_what_it_carried(site):
    write(site)
    (site.path / "listening.py").write_text(LISTENER)
    site.queue.push_raw(b'{"id":"k","job":"killed","tags":["a"],"data":[],"attempts":0}')
    with site.pool("--modules", "hooked", "--listeners", "listening", "--max-crashes", "2") as pool:
        eventually(lambda: "job failed" in pool.log())
    starts, lost = site.trail(event="job"), site.trail(event="lost")

    assert [("killed", 1, {"tags": ["a"]}), ("killed", 2, {"tags": ["a"]})] == [
        (line["job"], line["attempt"], line["extra"]) for line in lost
    ]
    assert all(
        one["began"] <= start["at"] <= one["ended"] <= one["at"] for start, one in zip(starts, lost, strict=True)
    )
    assert "extra" not in pool.log()
    assert 1 == len(site.trail(event="stopping"))


STAMPING = """
@on_push
def stamp(name, queue, fields):
    return {"stamped": name}
"""


def test_the_command_line_and_schedules_get_the_keys_of_on_push(site):
    write(site, STAMPING)
    site.run("push", "ok", *site.where, "--modules", "hooked")
    config = "[schedule:often]\njob = ok\nevery = 1\n"
    with site.pool("--modules", "hooked", "--listeners", "hooked", config=config):
        eventually(lambda: len(site.trail(event="job")) > 1)

    assert {"ok"} == {line["extra"]["stamped"] for line in site.trail(event="job")}


def test_a_push_in_the_applications_transaction_gets_them_too(sqlite_url, tmp_path: Path):
    program = f"""
from sqlalchemy import create_engine
from queuepool import connect, on_push
on_push(lambda name, queue, fields: {{"stamped": name}})
queue = connect({sqlite_url!r})
with create_engine({sqlite_url!r}).begin() as own:
    queue.within(own).push("a.b")
with create_engine({sqlite_url!r}).begin() as own:
    queue.within(own).bulk([("c.d", None)])
"""
    warm.run([sys.executable, "-m", "queuepool", "migrate", "--url", sqlite_url], check=True, capture_output=True)
    warm.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    queue = connect(sqlite_url)
    leases = queue.stores.queue.reserve(["default"], 1, 2).leases
    queue.close()

    assert ["a.b", "c.d"] == [json.loads(lease.receipt)["stamped"] for lease in leases]
