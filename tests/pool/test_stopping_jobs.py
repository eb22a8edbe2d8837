"""A long job sees that its worker is about to leave, and a worker leaves when it has had no job for a while."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.support import warm
from tests.support.eventually import eventually
from tests.support.pools import is_gone

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


POOL = ("--workers", "1", "--modules", "patient")
#: seconds in which a running job sees it: the steward looks at the control keys once a second, the master at requests
#: on the board four times a second; a command, or a replacement, has to boot first. Less than the 30 after which what
#: does not go on is killed
SOON = 20.0


def sees_it(patient, within=SOON):
    """Wait until the running job has seen that its worker takes no further one."""
    eventually(lambda: patient.trail(event="stopping"), within)
    assert [False] == [line["stopping"] for line in patient.trail(event="start")]


@pytest.mark.by_turns("preload")
@pytest.mark.parametrize(
    "signum",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.thorough("it means what TERM means")),
        signal.SIGUSR2,
        signal.SIGHUP,
        pytest.param(signal.SIGTTOU, marks=pytest.mark.thorough("a command below has one worker less")),
        signal.SIGKILL,
    ],
)
@pytest.mark.parametrize("preload", ["--preload", "--no-preload"])
def test_a_running_job_sees_what_a_signal_to_the_master_does(patient, signum, preload):
    """A stop, a pause, a restart, one worker less; and that its master is gone."""
    with patient.pool(*POOL, preload) as pool:
        eventually(lambda: patient.trail(event="start"))
        assert [] == patient.trail(event="stopping")
        pool.signal(signum)
        sees_it(patient)
        if signum == signal.SIGKILL:
            pool.wait()

    assert 1 == patient.queue.sizes("default").delayed


by_a_signal = pytest.mark.thorough("it sends the master what a test above sends it")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["stop"], marks=by_a_signal),
        ["restart"],
        pytest.param(["reload"], marks=by_a_signal),
        ["scale", "0"],
        pytest.param(["pause"], marks=by_a_signal),
        ["pause", "default"],
        ["down"],
    ],
    ids=" ".join,
)
def test_a_running_job_sees_what_a_command_does(patient, command):
    verb, *rest = command
    place = patient.where if verb in ("restart", "down") or rest == ["default"] else ()
    runtime = () if verb in ("down",) else ("--runtime-dir", str(patient.path / "run"))
    with patient.pool(*POOL):
        eventually(lambda: patient.trail(event="start"))
        words = [sys.executable, "-m", "queuepool", verb, *rest, *place, *runtime]
        told = warm.start(words, env=patient.env(), cwd=patient.path)
        sees_it(patient)
        told.wait(timeout=60)


@pytest.mark.thorough("a worker that is recycled has a job that does not see it, below")
@pytest.mark.parametrize("flags", [("--force",), ("--queue", "default,other")])
def test_a_job_whose_worker_may_go_on_with_others_does_not_see_a_pause(patient, flags):
    """In maintenance mode with ``--force``, and with one of its two queues paused."""
    with patient.pool(*POOL, *flags):
        eventually(lambda: patient.trail(event="start"))
        patient.run(*(["down"] if flags == ("--force",) else ["pause", "default"]), *patient.where)
        eventually(lambda: "maintenance" in log_of(patient) or "paused" in log_of(patient))
        assert [] == patient.trail(event="stopping")


def log_of(site):
    return (site.path / "log").read_text()


@pytest.mark.thorough("test_operating_a_pool.py has a replacement that cannot boot, and costs nobody")
def test_a_restart_whose_code_does_not_boot_stops_no_job(patient):
    """Its worker goes on with other jobs: one that released itself would at once be begun there again."""
    with patient.pool(*POOL) as pool:
        eventually(lambda: patient.trail(event="start"))
        (patient.path / "patient.py").write_text("raise RuntimeError('broken')")
        pool.signal(signal.SIGHUP)
        eventually(lambda: "RuntimeError: broken" in pool.log())
        assert [] == patient.trail(event="stopping")
        (patient.path / "patient.py").write_text(JOBS)
        sees_it(patient, within=30.0)


MORE = pytest.mark.thorough("another reason for the same end")


@pytest.mark.parametrize(
    "flags",
    [
        ("--max-jobs", "1"),
        pytest.param(("--max-time", "0.1"), marks=MORE),
        pytest.param(("--memory", "16"), marks=MORE),
    ],
)
def test_a_job_of_a_worker_that_is_to_be_recycled_does_not_see_it(site, flags):
    """Nothing waits for this worker; and with ``--max-jobs 1`` a job that released itself would never be done."""
    (site.path / "short.py").write_text(
        "import time\n"
        "from queuepool import current, job\n"
        "from tests.support.poolapp import note\n"
        "@job('short')\n"
        "def short():\n"
        "    time.sleep(0.3)\n"
        "    note(event='short', stopping=current().stopping)\n"
    )
    site.queue.push("short", {})
    site.queue.push("short", {})
    with site.pool("--workers", "1", "--modules", "short", *flags):
        eventually(lambda: 2 == len(site.trail(event="short")))

    assert 2 == len({line["pid"] for line in site.trail()})
    assert [False] * 2 == [line["stopping"] for line in site.trail()]


def test_a_job_of_a_lone_worker_whose_parent_has_ended_sees_it(patient):
    command = [sys.executable, "-m", "queuepool", "work", *patient.flags("--modules", "patient")]
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, *command], env=patient.env(), cwd=patient.path, stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:  # fmt: skip
        eventually(lambda: patient.trail(event="start"))
        parent.kill()
        sees_it(patient)
    [worker] = {line["pid"] for line in patient.trail()}
    eventually(lambda: is_gone(worker))


@pytest.mark.by_turns("signum")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_job_of_a_lone_worker_sees_its_signals(patient, signum):
    command = [sys.executable, "-m", "queuepool", "work", *patient.flags("--modules", "patient")]
    worker = warm.start(command, env=patient.env(), cwd=patient.path, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: patient.trail(event="start"))
        worker.send_signal(signum)
        code = worker.wait(timeout=60)
    finally:
        worker.kill()

    assert (0, 1, 1) == (code, len(patient.trail(event="stopping")), patient.queue.sizes("default").delayed)


def test_a_worker_without_a_job_for_a_while_leaves(site):
    """Here ``block_for`` is longer than that while, and a job in between begins it anew."""
    began = time.monotonic()
    site.push("ok")
    site.push("ok", delay=1)
    done = site.run("work", *site.flags("--stop-when-empty-for", "4"))
    took = time.monotonic() - began

    assert (2, True) == (len(site.trail(event="end")), "reason=empty_for" in done.stderr)
    # Two idle times, of which the delayed job cut the first short; the start is not counted.
    assert 5 <= took


def test_a_paused_worker_leaves_too(site):
    site.push("ok")
    site.run("pause", "default", *site.where)
    site.run("work", *site.flags("--stop-when-empty-for", "0.2"))

    assert 1 == site.queue.size()
