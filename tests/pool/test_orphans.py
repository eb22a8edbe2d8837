"""Workers of a killed master finish, nothing runs twice, and no order of deaths leaves anything behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from queuepool.stores.contract import NOTICE_KEPT
from queuepool.unix import fork
from tests.support import processes
from tests.support.eventually import eventually
from tests.support.pools import STEWARD, is_gone

PR_SET_CHILD_SUBREAPER = 36
#: seconds; leases are renewed after 4 of them and orphans are killed after 8, so that a steward may be late by 4
LEASE = 12
CONFIG = f"[connection]\nretry_after = {LEASE}\n"


def kill(pool, *pids: int) -> None:
    """Kill them at once, of a pool whose other processes are remembered."""
    pool.titles()
    processes.kill(*pids)
    if pool.pid in pids:
        pool.wait()


def wait_until_all_have_left(pool, runtime: Path) -> None:
    eventually(lambda: all(is_gone(pid) for pid in pool.seen))
    eventually(lambda: [] == [path for path in runtime.glob("*/*") if not path.name.startswith("hook.")])


@contextmanager
def reaping(reaped: bool) -> Iterator[None]:
    """Be the parent of all orphans, and leave the dead among them as zombies until the end."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, int(not reaped), 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    for child in psutil.Process().children():
        if child.status() == psutil.STATUS_ZOMBIE:
            os.waitpid(child.pid, 0)


def begun(site, jobs=1, **wanted):
    return eventually(lambda: len(found := site.trail(event="start", **wanted)) == jobs and found)


@pytest.mark.fault("F24")
def test_workers_of_a_killed_master_finish_and_leave_and_their_steward_clears_up_after_them(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with site.pool("--workers", "2") as pool:
        begun(site)
        kill(pool, pool.pid)
        eventually(lambda: [] == pool_workers(pool, "idle"))
        gate.touch()
        wait_until_all_have_left(pool, site.path / "run")

    assert 1 == len(site.trail(event="end"))
    assert 0 == site.queue.size()


def pool_workers(pool, state: str) -> list[int]:
    """Orphans are nobody's children any more: those that were seen."""
    found = []
    for pid in pool.seen:
        try:
            found += [pid] if f"] {state}" in " ".join(psutil.Process(pid).cmdline()) else []
        except psutil.Error:
            continue
    return found


@pytest.mark.fault("F24")
def test_an_orphans_job_longer_than_its_reservation_is_not_started_again_by_others(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate), tag="long")
    with site.pool("--workers", "1", config=CONFIG) as pool:
        begun(site)
        kill(pool, pool.pid)
        site.push("ok", tag="a lease later", delay=LEASE + 2)
        with site.pool("--workers", "2", "--runtime-dir", str(site.path / "elsewhere"), config=CONFIG):
            begun(site, tag="a lease later")
            assert 1 == len(site.trail(event="start", tag="long"))
            gate.touch()
            eventually(lambda: site.trail(event="end", tag="long"))
        wait_until_all_have_left(pool, site.path / "run")

    assert 1 == len(site.trail(event="start", tag="long"))
    assert 0 == site.queue.size()


@pytest.mark.fault("F24")
def test_a_new_master_takes_over_while_the_old_ones_workers_still_run(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate), tag="orphan")
    site.push("until", gate=str(gate), tag="dead", maxTries=0)
    with site.pool("--workers", "2") as pool:
        starts = begun(site, 2)
        dead = next(line["pid"] for line in starts if line["tag"] == "dead")
        kill(pool, pool.steward(), dead, pool.pid)
        with site.pool("--workers", "1"):
            begun(site, 2, tag="dead")
            gate.touch()
            eventually(lambda: len(site.trail(event="end")) == 2)

    assert 1 == len(site.trail(event="start", tag="orphan"))
    assert 0 == site.queue.size()


@pytest.mark.fault("F24")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGQUIT])
def test_a_pool_that_took_over_an_orphan_ends_with_it(site, stop):
    gate = site.path / "gate"
    site.push("until", gate=str(gate), maxTries=1)
    with site.pool("--workers", "1") as pool:
        (start,) = begun(site)
        kill(pool, pool.steward(), pool.pid)
        with site.pool("--workers", "1") as successor:
            successor.signal(stop)
            if stop == signal.SIGTERM:  # running jobs may finish
                eventually(lambda: waits_for_orphans(successor))
                told = site.run("status", "--runtime-dir", str(site.path / "run"), *site.where, check=False)
                assert "workers of a killed master still run, and a stop waits for them: 1" in told.stdout
                assert not is_gone(start["pid"])
                gate.touch()
            assert 0 == successor.wait()
            assert is_gone(start["pid"])

    assert (stop == signal.SIGTERM) == bool(site.trail(event="end"))
    assert (stop == signal.SIGQUIT) == site.queue.size()
    assert not site.queue.stores.failed.page()


@contextmanager
def orphaned(site, config: str = "") -> Iterator[int]:
    """The pid of a worker whose master and steward are dead, in a job that ends when ``gate`` is there."""
    site.push("until", gate=str(site.path / "gate"), tag="orphan", maxTries=1)
    with site.pool("--workers", "1", config=config) as pool:
        (start,) = begun(site)
        kill(pool, pool.steward(), pool.pid)
        yield start["pid"]
        eventually(lambda: is_gone(start["pid"]))
    assert 0 == site.queue.size()


@pytest.fixture
def orphan(site) -> Iterator[int]:
    with orphaned(site) as pid:
        yield pid


def waits_for_orphans(pool) -> bool:
    return "waiting for workers of killed masters" in pool.log()


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
def test_a_stop_that_waits_for_an_orphan_replaces_a_steward_that_dies(site, orphan):
    with site.pool("--workers", "1") as successor:
        steward = successor.steward()
        successor.signal(signal.SIGTERM)
        eventually(lambda: waits_for_orphans(successor))
        os.kill(steward, signal.SIGKILL)
        eventually(lambda: successor.pids(STEWARD) not in ([], [steward]))
        assert not is_gone(orphan)
        (site.path / "gate").touch()
        assert 0 == successor.wait()

    assert site.trail(event="end", tag="orphan")


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
def test_an_orphan_is_ended_and_given_back_though_the_steward_dies_when_the_stop_waits_no_longer(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate), tag="orphan", maxTries=1)
    with site.pool("--workers", "1") as pool:
        (start,) = begun(site)
        kill(pool, pool.steward(), pool.pid)
        with site.pool("--workers", "1") as successor:
            steward = successor.steward()
            successor.signal(signal.SIGTERM)
            eventually(lambda: waits_for_orphans(successor))
            processes.halt(successor.pid)
            processes.kill(steward)
            successor.signal(signal.SIGQUIT)
            successor.signal(signal.SIGCONT)
            assert 0 == successor.wait()
            assert is_gone(start["pid"])

    assert (1, 0) == (site.queue.sizes().ready, site.queue.sizes().reserved)


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
def test_a_stop_waits_for_an_orphan_that_its_steward_has_not_counted_yet(site):
    site.push("until", gate=str(site.path / "gate"), maxTries=1)
    with site.pool("--workers", "1") as pool:
        begun(site)
        steward = pool.steward()
        kill(pool, pool.pid)
        with site.pool("--workers", "1") as successor:
            kill(pool, steward)  # until now the orphan was that one's
            successor.signal(signal.SIGTERM)
            eventually(lambda: waits_for_orphans(successor))
            (site.path / "gate").touch()
            assert 0 == successor.wait()

    assert site.trail(event="end")


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
@pytest.mark.parametrize("stops", [False, True], ids=["", "during a stop"])
def test_a_steward_that_alone_is_told_to_leave_ends_no_orphan(site, orphan, stops):
    with site.pool("--workers", "1") as successor:
        if stops:
            successor.signal(signal.SIGTERM)
            eventually(lambda: waits_for_orphans(successor))
        for _ in range(4):  # somebody in a hurry: no steward has failed by that
            steward = successor.steward()
            os.kill(steward, signal.SIGTERM)
            eventually(lambda gone=steward: successor.pids(STEWARD) not in ([], [gone]))
        assert not is_gone(orphan)
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end", tag="orphan"))


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
def test_a_start_that_fails_ends_no_orphan(site, orphan):
    with site.pool("--workers", "1", "--modules", "no_such_module", wait=False) as successor:
        eventually(lambda: waits_for_orphans(successor))
        (site.path / "gate").touch()
        assert 1 == successor.wait()

    assert site.trail(event="end", tag="orphan")


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
def test_an_orphan_whose_second_master_is_killed_too_is_looked_after_to_its_end(site):
    with orphaned(site, CONFIG) as orphan, site.pool("--workers", "1", config=CONFIG) as successor:
        kill(successor, successor.pid)
        site.push("ok", tag="a lease later", delay=LEASE + 2)
        with site.pool("--workers", "1", "--runtime-dir", str(site.path / "elsewhere"), config=CONFIG):
            begun(site, tag="a lease later")
            assert 1 == len(site.trail(event="start", tag="orphan"))
            assert not is_gone(orphan)
            (site.path / "gate").touch()
            eventually(lambda: site.trail(event="end", tag="orphan"))
        wait_until_all_have_left(successor, site.path / "run")


@pytest.mark.thorough("a second fault during one that has its own test above")
@pytest.mark.fault("F24")
def test_a_stop_at_once_ends_an_orphan_while_the_store_is_silent(away, own_server):
    away.push("until", gate=str(away.path / "gate"))
    with away.pool("--workers", "1") as pool:
        (start,) = begun(away)
        kill(pool, pool.steward(), pool.pid)
        with away.pool("--workers", "1") as successor:
            processes.halt(own_server.process.pid)
            successor.signal(signal.SIGQUIT)
            successor.wait()
            assert is_gone(start["pid"])
            processes.go_on(own_server.process.pid)
            with away.pool("--workers", "1"):  # settles what the silence has left, and runs the job again
                (away.path / "gate").touch()
                eventually(lambda: 0 == away.queue.size())


@pytest.mark.fault("F24")
def test_what_a_killed_master_has_published_goes_when_its_pool_runs_again(site):
    with site.pool("--workers", "1") as pool:
        masters = eventually(lambda: published(site))
        kill(pool, pool.pid)
        wait_until_all_have_left(pool, site.path / "run")
        assert [pool.pid] == masters == published(site)
        with site.pool("--workers", "1") as successor:
            eventually(lambda: [successor.pid] == published(site))

    assert [] == published(site)


def published(site) -> list[int]:
    return [notice["master"] for notice in site.queue.stores.control.pools(NOTICE_KEPT)]


@pytest.mark.fault("F24")
def test_an_orphan_that_escapes_its_alarm_is_killed_by_the_steward(site):
    site.push("block_signals", timeout=2, maxTries=1)
    with site.pool("--workers", "1", "--grace", "0.2") as pool:
        begun(site)
        kill(pool, pool.pid)
        record = eventually(site.queue.stores.failed.page)[0]
        wait_until_all_have_left(pool, site.path / "run")

    assert "TimedOut" in record.exception


all_three = pytest.mark.thorough("each dies before and after the master anyway")
before_it = pytest.mark.thorough("none can act on the death of another, and after the master each dies by default")


@pytest.mark.fault("F24")
@pytest.mark.parametrize(
    "order",
    [
        "master",
        "master steward",
        pytest.param("steward master", marks=before_it),
        pytest.param("worker master", marks=before_it),
        "master worker",
        pytest.param("worker steward master", marks=all_three),
        pytest.param("steward worker master", marks=all_three),
        "master worker steward",
    ],
)
def test_in_any_order_of_deaths_the_job_is_done_and_nothing_is_left(site, order):
    gate = site.path / "gate"
    site.push("until", gate=str(gate), maxTries=0)
    with site.pool("--workers", "2") as pool:
        (start,) = begun(site)
        pids = {"master": pool.pid, "steward": pool.steward(), "worker": start["pid"]}
        kill(pool, *(pids[name] for name in order.split()))
        if "worker" in order:
            with site.pool("--workers", "1"):
                begun(site, 2)
                gate.touch()
                eventually(lambda: site.trail(event="end"))
        else:
            gate.touch()
            eventually(lambda: site.trail(event="end"))
            with site.pool("--workers", "1"):
                pass
        wait_until_all_have_left(pool, site.path / "run")

    assert 1 == len(site.trail(event="end"))
    assert 0 == site.queue.size()


@pytest.mark.fault("F15")
@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["session", "daemon", "bare"])
def test_what_a_job_has_left_in_a_session_of_its_own_ends_with_its_worker(site, mode):
    gate = site.path / "gate"
    site.push(mode, gate=str(gate), maxTries=1)
    with site.pool("--workers", "1", wait=False):  # a daemon keeps the title of the worker that forked it
        child = eventually(lambda: site.trail(event="child"))[0]["child"]
        (start,) = begun(site)
        assert not is_gone(child)
        os.kill(start["pid"], signal.SIGKILL)
        eventually(lambda: is_gone(child))


@pytest.mark.fault("F15")
@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["session", "orphan"])
def test_what_a_job_of_a_lone_worker_has_left_ends_with_it(site, mode):
    gate = site.path / "gate"
    gate.touch()
    site.push(mode, gate=str(gate))
    site.work("--log", "log")  # else they would hold the pipe that the end of the command is seen by
    [child] = site.trail(event="child")

    assert site.trail(event="end")
    eventually(lambda: is_gone(child["child"]))


@pytest.mark.fault("F15")
def test_what_a_job_has_left_outlives_the_workers_of_others_and_ends_with_a_stop(site):
    gate = site.path / "gate"
    site.push("session", gate=str(gate), maxTries=1)
    with site.pool("--workers", "2") as pool:
        child = eventually(lambda: site.trail(event="child"))[0]["child"]
        (start,) = begun(site)
        gate.touch()
        eventually(lambda: site.trail(event="end"))
        other = next(pid for pid in pool.workers() if pid != start["pid"])
        processes.kill(other)
        pool.wait_until_ready()
        assert not is_gone(child)
    eventually(lambda: is_gone(child))


@pytest.mark.thorough("the test above has processes that outlive the workers of others")
@pytest.mark.fault("F15")
def test_what_a_job_runs_and_what_the_pool_had_before_it_began_outlive_the_workers_of_others(site):
    began_before = ["sh", "-c", f'sleep 120 & echo $! > {site.path}/before; exec "$@"', "sh"]
    site.push("bare", gate=str(site.path / "gate"), maxTries=1)
    with site.pool("--workers", "2", parent=began_before) as pool:
        child = eventually(lambda: site.trail(event="child"))[0]["child"]
        before = int((site.path / "before").read_text())
        (start,) = begun(site)
        processes.kill(next(pid for pid in pool.workers() if pid != start["pid"]))
        pool.wait_until_ready()
        site.push("kill", maxTries=1)  # a second death is swept up after the first was
        eventually(lambda: 2 == len(site.trail(event="start")))
        pool.wait_until_ready()
        assert not is_gone(child)
        processes.kill(start["pid"])
        eventually(lambda: is_gone(child))
        assert not is_gone(before)
        processes.kill(before)


@pytest.mark.thorough("the next test has an orphan that leaves, and those above have what a job has left")
@pytest.mark.fault("F15")
@pytest.mark.parametrize("mode", ["session", "bare"])
def test_what_an_orphans_job_has_left_ends_with_the_orphan(site, mode):
    gate = site.path / "gate"
    site.push(mode, gate=str(gate), maxTries=1)
    with site.pool("--workers", "1") as pool:
        child = eventually(lambda: site.trail(event="child"))[0]["child"]
        kill(pool, pool.pid)
        assert not is_gone(child)
        gate.touch()
        eventually(lambda: is_gone(child))
        wait_until_all_have_left(pool, site.path / "run")


@pytest.mark.fault("F15")
@pytest.mark.by_turns("reaped")
@pytest.mark.parametrize("reaped", [True, False])
def test_what_an_orphan_has_left_ends_also_when_the_orphan_leaves_in_order(site, reaped):
    site.push("copy")
    with site.pool("--workers", "1", wait=False) as pool, reaping(reaped):
        (line,) = eventually(lambda: site.trail(event="child"))
        eventually(lambda: site.trail(event="end"))
        kill(pool, pool.pid)
        eventually(lambda: is_gone(line["child"]))
        wait_until_all_have_left(pool, site.path / "run")


@pytest.mark.fault("F28")
def test_a_process_that_is_not_the_one_meant_is_not_signalled():
    other, ended = subprocess.Popen(["sleep", "60"]), subprocess.Popen(["true"])
    ended.wait()
    try:
        for pid in (other.pid, ended.pid):
            fork.kill_other(pid, lambda _: False)
            fork.signal_other(pid, signal.SIGTERM, lambda _: False)
        fork.signal_other(ended.pid, signal.SIGTERM, lambda _: True)
        assert not is_gone(other.pid)

        fork.signal_other(other.pid, signal.SIGTERM, lambda pid: pid == other.pid)
        assert -signal.SIGTERM == other.wait()
    finally:
        other.kill()
        other.wait()


_ANOTHER_USERS = """
import os, signal, sys
from queuepool.unix import proc, stray_processes
from queuepool.unix.stray_processes import ProcessMark

dead = ProcessMark.of("board.1-1", 3, 1)
if (child := os.fork()) == 0:
    stray_processes.mark(dead)
    os.write(int(sys.argv[1]), b"marked")
    signal.pause()
os.read(int(sys.argv[2]), 6)
os.setresuid(65534, 65534, 0)
first = stray_processes.sweep((), "board.1-1", ())
print(first == {child}, stray_processes.sweep((), "board.1-1", (), refused=first) == {child}, flush=True)
os.setresuid(0, 0, 0)
print(stray_processes.sweep((), "board.2-2", ()), stray_processes.sweep((), "board.1-1", (dead,)), flush=True)
print(stray_processes.sweep((), "board.1-1", ()), os.waitpid(child, 0)[1])
"""


@pytest.mark.fault("F15")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_what_is_another_users_or_of_another_pool_or_of_a_living_worker_is_left_alone():
    reads, writes = os.pipe()
    command = [sys.executable, "-c", _ANOTHER_USERS, str(writes), str(reads)]
    done = subprocess.run(command, pass_fds=(reads, writes), capture_output=True, text=True, check=True)
    os.close(reads)
    os.close(writes)

    assert "True True\nset() set()\nset() 9\n" == done.stdout
    assert 1 == done.stderr.count("it is another user's")


@pytest.mark.fault("F28")
@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_groups_and_everybody_are_never_signalled(pid):
    with pytest.raises(ValueError, match="refusing to signal pid"):
        fork.kill(pid)
