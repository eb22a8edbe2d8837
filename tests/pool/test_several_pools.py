"""Several pools of one file: one of them dies, cannot boot or is stopped, and the others, their jobs and the log."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from tests.support.eventually import eventually
from tests.support.lines import time_of
from tests.support.service_manager import ServiceManager, service_manager

TWO = """
[pool:first]
workers = 1
[pool:second]
queue = second
workers = 1
"""
#: in a worker of the first pool it cannot be imported
PICKY = """
from setproctitle import getproctitle
from tests.support.poolapp import *
if "[first]" in getproctitle():
    raise RuntimeError("half deployed")
"""


@pytest.fixture
def manager(site) -> Iterator[ServiceManager]:
    with service_manager(site.path / "notify", 6.0) as manager:
        yield manager


def master_of(pool, name: str) -> int:
    return eventually(lambda: pool.pids(rf"^queuepool: master \[{name}\] running"))[0]


def shows(pool, masters: int) -> bool:
    return [pool.pid] == pool.pids(rf"^queuepool: parent \[first,second\] running masters={masters}$")


def test_a_killed_master_is_replaced_as_soon_as_it_can_and_no_job_of_any_pool_runs_twice(site, manager):
    module = site.path / "picky.py"
    module.write_text("from tests.support.poolapp import *\n")
    gate = site.path / "gate"
    jobs = [site.push("until", queue=queue, gate=str(gate)) for queue in ("default", "second")]
    with site.pool("--modules", "picky", config=TWO, parent=manager.parent(), wait=False) as pool:
        eventually(lambda: ["READY"] == manager.phases() and len(site.trail(event="start")) == 2)
        killed, other = master_of(pool, "first"), master_of(pool, "second")
        module.write_text(PICKY)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: manager.having(r"STATUS=running masters=1; pool first is down: .* never .*: exit code 1"))
        eventually(lambda: shows(pool, 1))
        module.write_text("from tests.support.poolapp import *\n")
        pool.signal(signal.SIGHUP)
        eventually(lambda: "the pool is back" in pool.log() and shows(pool, 2))
        done = site.push("ok")  # by the new master's worker: the killed one's still runs its job
        eventually(lambda: site.trail(event="end", id=done))
        gate.touch()
        eventually(lambda: len(site.trail(event="end")) == 3)
        eventually(lambda: manager.having("STATUS=running masters=2") and ["READY"] == manager.phases()[-1:])
        assert other == master_of(pool, "second")

    assert [1, 1] == [len(site.trail(event="start", id=job)) for job in jobs]
    first, next_one = rf" pool=first parent pid={pool.pid} master pid={killed} ", rf" pool=first parent pid={pool.pid} "
    assert re.search(rf" ERROR{first}died: signal 9 \(SIGKILL\); next try in 0\.\ds\n", pool.log())
    assert re.search(rf" ERROR{next_one}master pid=\d+ never became ready: exit code 1; next try in", pool.log())
    assert re.search(rf" WARNING{next_one}master pid=\d+ has become ready: the pool is back\n", pool.log())


@pytest.mark.by_turns("what")
@pytest.mark.parametrize("what", ["code", "address"])
def test_a_pool_that_cannot_start_ends_the_start_of_all_and_nobody_is_told_that_they_are_ready(site, manager, what):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"[pool:third]\nlisten = 127.0.0.1:{taken.getsockname()[1]}\n" if what == "address" else ""
        (site.path / "picky.py").write_text(PICKY)
        modules = "picky" if what == "code" else "tests.support.poolapp"
        flags = ("--workers", "1", "--modules", modules)
        with site.pool(*flags, config=TWO + listen, env=manager.variables(), wait=False) as pool:
            code = pool.wait()
    name, expected = {"code": ("first", 1), "address": ("third", 78)}[what]

    assert expected == code
    assert ["STOPPING"] == manager.phases()
    cause = f"never became ready: exit code {expected}: the start has failed, every pool of the file is stopped"
    assert re.search(rf" CRITICAL pool={name} parent pid=\d+ master pid=\d+ {cause}\n", pool.log())
    assert manager.having(rf"STATUS=gives up, see the log: draining masters=\d; pool {name} is down: .*")


def failures(pool) -> int:
    return int(pool.log().count("never became ready"))


def has_time(pool) -> bool:
    """Whether it is five seconds and more until the next try: while that is made, the pool has a master."""
    said_at, seconds = re.findall(r"^(\S+) .*; next try in ([\d.]+)s$", pool.log(), re.MULTILINE)[-1]
    return time_of(said_at) + float(seconds) - time.time() >= 5.0


@pytest.mark.thorough("test_parent.py has what an operator says of a pool outlive its master")
def test_a_pool_that_is_down_can_be_seen_tried_again_paused_and_stopped(site):
    module = site.path / "picky.py"
    module.write_text("from tests.support.poolapp import *\n")
    place = ("--runtime-dir", "run", "-c", "pool.ini", *site.where)

    def said(*words: str) -> tuple[int, str]:
        done = site.run(*words, *place, check=False)
        return done.returncode, done.stdout + done.stderr

    with site.pool("--modules", "picky", config=TWO, wait=False) as pool:
        killed = eventually(lambda: shows(pool, 2) and master_of(pool, "second") and master_of(pool, "first"))
        module.write_text(PICKY)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: failures(pool) > 1 and has_time(pool))
        code, words = said("status")
        assert (3, True) == (code, "pool first: down, its parent tries again: master pid=" in words)
        before = failures(pool)
        code, words = said("reload")
        assert (1, True) == (code, "pool first is down; it is tried again at once\n" in words)
        assert "pool first is down: master pid=" in words
        # Not while it is tried again: a pause that such a master hears itself ends with it.
        eventually(lambda: failures(pool) > before and has_time(pool))
        assert said("pause", "--pool", "first") == (0, "pool first is down; it will be paused when it is back\n")
        module.write_text("from tests.support.poolapp import *\n")
        eventually(lambda: pool.pids(r"^queuepool: master \[first\] paused"))

        module.write_text(PICKY)
        before = failures(pool)
        os.kill(pool.pids(r"^queuepool: master \[first\]")[0], signal.SIGKILL)
        eventually(lambda: failures(pool) > before and has_time(pool), within=60.0)  # its next try comes after 16
        assert (0, True) == ((found := said("stop", "--wait", "30"))[0], "first is down; it is not tried" in found[1])
        assert 1 == pool.wait()  # one that was down and is not back has failed
        assert (3, False) == ((found := said("status"))[0], "tries again" in found[1])
    assert [] == [*(site.path / "run" / "first").glob("retried"), *(site.path / "run" / "first").glob("signal")]


def test_a_pool_that_is_stopped_stays_so_and_the_other_one_goes_on(site, manager):
    place = ("--runtime-dir", "run", "-c", "pool.ini", *site.where)
    with site.pool(config=TWO, env=manager.variables(), wait=False) as pool:
        eventually(lambda: ["READY"] == manager.phases())
        killed = master_of(pool, "second")
        site.run("stop", "--pool", "first", "--wait", "30", *place)
        eventually(lambda: shows(pool, 1))
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: killed != master_of(pool, "second") and shows(pool, 1))
        assert [] == pool.pids(r"master \[first\]")
        done = site.push("ok", queue="second")
        eventually(lambda: site.trail(event="end", id=done))
        assert 3 == site.run("status", "--pool", "first", *place, check=False).returncode

    assert ["READY", "STOPPING"] == manager.phases()
    assert "pool=first parent" not in pool.log()
