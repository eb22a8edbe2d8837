"""Faults of the master, injected into a real pool."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.eventually import eventually
from tests.support.processes import go_on, halt

MODULES = ("--modules", "tests.support.poolapp,tests.support.faultapp")
STORM = [
    signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD,
    signal.SIGWINCH, signal.SIGPIPE, signal.SIGURG,
]  # fmt: skip


def links(pid: int) -> list[str]:
    """What the process's descriptors are."""
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has just been closed
            found.append(os.readlink(path))
    return found


@pytest.mark.fault("F25")
def test_a_master_that_was_stopped_kills_nobody_when_it_goes_on(site):
    """Leases and deadlines passed meanwhile, all but one of them kept by somebody else."""
    gate = site.path / "gate"
    for _ in range(3):
        site.push("until", gate=str(gate))
    late = site.push("hang_in_c", timeout=3, maxTries=1)  # in which it begins on a busy machine
    config = f"[connection]\nurl = {site.connection.url}\nprefix = {site.connection.prefix}\nretry_after = 8\n"
    with site.pool("--workers", "5", config=config) as pool:
        eventually(lambda: 4 == len(site.trail(event="start")))
        halt(pool.pid)
        stopped = time.monotonic()
        eventually(lambda: time.monotonic() > stopped + 9)
        go_on(pool.pid)
        [row] = eventually(site.queue.stores.failed.page)
        pool.wait_until_ready(5)
        gate.touch()
        eventually(lambda: 3 == len(site.trail(event="end")))

    assert late == row.id
    assert "killed" not in pool.log()
    assert [1] * 4 == [line["attempt"] for line in site.trail(event="start")]


@pytest.mark.fault("F26")
@pytest.mark.by_turns("seed")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_of_signals_loses_none_and_ends_in_one_clean_exit(site, seed):
    dice = random.Random(seed)
    for number in range(50):
        site.push("ok", tag=str(number))
    with site.pool("--workers", "2") as pool:
        for _ in range(200):
            pool.signal(dice.choice(STORM))
        pool.signal(signal.SIGCONT)
        site.run("scale", "2", "--runtime-dir", pool.runtime)  # of many orders for one more or fewer, 0 may be left
        eventually(lambda: 50 == len(site.trail(event="end")))
        for _ in range(5):
            pool.signal(signal.SIGTERM)
            pool.signal(dice.choice(STORM))

        assert 0 == pool.wait()

    assert 50 == len(site.trail(event="start"))
    assert 0 == site.queue.size()


@pytest.mark.fault("F27")
def test_a_master_without_descriptors_keeps_what_it_has_and_refills_when_it_can(site):
    with site.pool("--workers", "2") as pool:
        usual = resource.prlimit(pool.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pool.pid, resource.RLIMIT_NOFILE, (4, usual[1]))
        os.kill(pool.workers()[0], signal.SIGKILL)
        eventually(lambda: 1 == len(pool.workers()) or pool.process.poll() is not None)
        site.push("ok")
        eventually(lambda: site.trail(event="end") or pool.process.poll() is not None)
        resource.prlimit(pool.pid, resource.RLIMIT_NOFILE, usual)

        assert None is pool.process.poll()
        pool.wait_until_ready(2)


AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable]
IS_ROOT = os.geteuid() == 0


def can_be_nobody() -> bool:
    """Whether it takes root to read the interpreter and its packages."""
    again = "import click, psutil, pytest, redis, subprocess, sys; subprocess.check_call([sys.executable, '-c', ''])"
    probe = [*AS_NOBODY, "-c", again]
    return IS_ROOT and subprocess.call(probe, stderr=subprocess.DEVNULL, cwd="/") == 0


@pytest.mark.fault("F27")
@pytest.mark.skipif(not can_be_nobody(), reason="takes root, and an interpreter that everybody can read")
def test_a_master_that_cannot_fork_is_shown_as_nobody_where_root_runs_the_tests():
    test = f"{__file__}::{test_a_master_that_cannot_fork_keeps_what_it_has_and_refills_when_it_can.__name__}"
    command = [*AS_NOBODY, "-B", "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", test]
    done = subprocess.run(
        command, env={**os.environ, "HOME": "/"}, cwd=Path(__file__).parents[2], capture_output=True, text=True
    )

    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.fault("F27")
@pytest.mark.skipif(IS_ROOT, reason="the limit does not hold for root")
def test_a_master_that_cannot_fork_keeps_what_it_has_and_refills_when_it_can(site):
    with site.pool("--workers", "2") as pool:
        usual = resource.prlimit(pool.pid, resource.RLIMIT_NPROC)
        resource.prlimit(pool.pid, resource.RLIMIT_NPROC, (1, usual[1]))
        os.kill(pool.workers()[0], signal.SIGKILL)
        eventually(lambda: "cannot fork" in pool.log())
        site.push("ok")
        eventually(lambda: site.trail(event="end"))
        resource.prlimit(pool.pid, resource.RLIMIT_NPROC, usual)
        pool.wait_until_ready(2)


@pytest.mark.fault("F28")
@pytest.mark.bad_input("B080")
def test_a_pidfile_that_names_a_stranger_is_nobodys(site):
    """Its lock says who is master: a stranger with a number that was a master's is never told anything."""
    here = site.path / "run" / "default"
    here.mkdir(mode=0o700, parents=True)
    with subprocess.Popen(["sleep", "600"]) as stranger:
        (here / "master.pid").write_text(f"{stranger.pid}\n")
        stop = site.run("stop", "--runtime-dir", str(site.path / "run"), "--now", check=False)
        with site.pool("--workers", "1") as pool:
            assert pool.pid == int((here / "master.pid").read_text())
        alive = stranger.poll() is None
        stranger.kill()

    assert (3, True) == (stop.returncode, alive)


@pytest.mark.fault("F28")
@pytest.mark.bad_input("B080")
def test_what_is_left_of_a_killed_master_is_taken_over(site):
    with site.pool("--workers", "1") as pool:
        pool.signal(signal.SIGKILL)
        pool.wait()
        with site.pool("--workers", "1") as second:
            assert second.pid != pool.pid


NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.fault("F29")
@pytest.mark.skipif(subprocess.call([*NAMESPACE, "true"], stderr=subprocess.DEVNULL) != 0, reason="needs unshare")
def test_as_process_1_it_buries_strangers_and_takes_none_for_a_worker(site):
    flags = [*site.flags(*MODULES), "--workers", "1", "--runtime-dir", str(site.path / "run")]
    command = [*NAMESPACE, sys.executable, "-m", "queuepool", "start", *flags]
    gate = site.path / "gate"
    site.queue.push("leave_an_orphan", {"gate": str(gate)})
    with (site.path / "log").open("wb") as log:
        outer = subprocess.Popen(command, env=site.env(), stderr=log)
    try:
        eventually(lambda: 0 == site.queue.size())
        [master] = psutil.Process(outer.pid).children()
        eventually(lambda: 3 == len(master.children()))
        gate.touch()
        eventually(lambda: 2 == len(master.children()))
        site.push("ok")
        eventually(lambda: site.trail(event="end"))
        master.terminate()
        assert 0 == outer.wait(timeout=60)
    finally:
        outer.kill()
        outer.wait()

    log_text = (site.path / "log").read_text()
    assert 1 == log_text.count("worker starting")
    assert "ERROR" not in log_text


@pytest.mark.fault("F32")
def test_a_pipe_that_nobody_reads_holds_no_deadline_up(site):
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "queuepool", "start", *site.flags(*MODULES), "--workers", "1", "--verbose"]
    for number in range(300):  # whose lines are more than a pipe holds, some more than it takes at once
        what = "surrogates" if number % 10 else "long"
        site.queue.push("throw", {"what": what}, options={"maxTries": 1})
    site.push("hang_in_c", timeout=0.3, maxTries=1)
    flags = ["--runtime-dir", str(site.path / "run")]
    process = subprocess.Popen([*command, *flags], env=site.env(), stdout=writer, stderr=writer)
    os.close(writer)
    try:
        eventually(lambda: 301 == site.queue.stores.failed.count(), within=120)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(reader)


@pytest.mark.fault("F32")
def test_a_full_disk_under_the_log_harms_nobody(site):
    site.push("ok")
    site.push("hang_in_c", timeout=0.3, maxTries=1)
    with site.pool("--workers", "1", "--log", "/dev/full"):
        eventually(site.queue.stores.failed.page)

    assert 1 == len(site.trail(event="end"))


@pytest.mark.fault("F33")
def test_a_restart_is_ignored_while_stopping_and_the_stop_ends_in_time(site):
    site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "1", "--stop-timeout", "4") as pool:
        eventually(lambda: site.trail(event="start"))
        workers = pool.workers()
        pool.signal(signal.SIGTERM)
        eventually(lambda: pool.pids("master .* draining"))
        pool.signal(signal.SIGHUP)
        pool.signal(signal.SIGTTIN)
        assert set(pool.workers()) <= set(workers)
        assert 0 == pool.wait()

    assert [1, 1] == [pool.log().count(words) for words in ("worker starting", "killed: STOP")]
    assert 1 == site.queue.sizes().ready


@pytest.mark.fault("F36", "F37")
def test_a_master_has_neither_threads_nor_connections_to_give_away(site):
    site.push("ok")
    with site.pool("--workers", "1", "--queue", "default") as pool:
        eventually(lambda: site.trail(event="end"))
        master, worker = psutil.Process(pool.pid), pool.workers()[0]

        assert 1 == master.num_threads()
        assert [] == [link for link in links(pool.pid) if link.startswith("socket:")]
        assert [] != [link for link in links(worker) if link.startswith("socket:")]
