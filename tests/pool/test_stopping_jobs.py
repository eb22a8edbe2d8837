"""A long job sees that its worker is about to leave, and a worker leaves when it has had no job for a while."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.support.eventually import eventually

JOBS = """
import time
from queuepool import current, job
from tests.support.poolapp import note

@job("patient", tries=0)
def patient() -> None:
    note(event="start", stopping=current().stopping)
    while not current().stopping:
        time.sleep(0.005)
    note(event="stopping")
    current().release(60)
"""


@pytest.fixture
def patient(site):
    """A place where the job ``patient`` waits, which runs until its worker is to leave."""
    (site.path / "patient.py").write_text(JOBS)
    site.queue.push("patient", {})
    return site


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGHUP])
def test_a_job_in_a_pool_sees_a_stop_a_pause_and_a_restart(patient, signum):
    with patient.pool("--workers", "1", "--modules", "patient") as pool:
        eventually(lambda: patient.trail(event="start"))
        assert [] == patient.trail(event="stopping")
        pool.signal(signum)
        eventually(lambda: patient.trail(event="stopping"))

    assert [False] == [line["stopping"] for line in patient.trail(event="start")]
    assert 1 == patient.queue.sizes("default").delayed


def test_a_job_sees_a_restart_by_the_command_line(patient):
    with patient.pool("--workers", "1", "--modules", "patient"):
        eventually(lambda: patient.trail(event="start"))
        patient.run("restart", *patient.where)
        eventually(lambda: patient.trail(event="stopping"))


def test_a_job_of_a_worker_that_is_one_too_many_sees_it(patient):
    with patient.pool("--workers", "1", "--modules", "patient") as pool:
        eventually(lambda: patient.trail(event="start"))
        pool.signal(signal.SIGTTOU)
        eventually(lambda: patient.trail(event="stopping"))


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_job_of_a_lone_worker_sees_its_signals(patient, signum):
    command = [sys.executable, "-m", "queuepool", "work", *patient.flags("--modules", "patient")]
    with subprocess.Popen(command, env=patient.env(), cwd=patient.path, stderr=subprocess.DEVNULL) as worker:
        eventually(lambda: patient.trail(event="start"))
        worker.send_signal(signum)
        code = worker.wait(timeout=10)

    assert (0, 1, 1) == (code, len(patient.trail(event="stopping")), patient.queue.sizes("default").delayed)


def test_a_worker_without_a_job_for_a_while_leaves(site):
    """Here ``block_for`` is longer than that while, and a job in between begins it anew."""
    site.push("ok")
    site.push("ok", delay=1)
    began = time.monotonic()
    done = site.run("work", *site.flags("--stop-when-empty-for", "1.5"))
    took = time.monotonic() - began

    assert (2, True) == (len(site.trail(event="end")), "reason=empty_for" in done.stderr)
    # Two idle times, of which the delayed job cut the first short; the start is not counted.
    assert 2.5 <= took < 5.0


def test_a_paused_worker_leaves_too(site):
    site.push("ok")
    site.run("pause", "default", *site.where)
    site.run("work", *site.flags("--stop-when-empty-for", "0.2"))

    assert 1 == site.queue.size()
